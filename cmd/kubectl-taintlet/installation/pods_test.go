package installation

import "testing"

// The release of an agent is in the tag of its image.
func TestReleaseOf(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0": "0.1.0", "0.1.0": "0.1.0", "taintlet/taintlet:0.1.0": "0.1.0", "images.example.com:5000/t/taintlet:v1.2.3@sha256:12": "1.2.3",
		"(devel)": "", "": "", "taintlet/taintlet": "", "taintlet/taintlet:latest": "", "v0.0.0-20261123-abcdef": "", "images.example.com:5000/taintlet": "",
	} {
		if got := ReleaseOf(version); got != want {
			t.Errorf("ReleaseOf(%q) = %q", version, got)
		}
	}
}

// Of a configuration that is invalid nothing is used.
func TestAnInvalidConfigurationIsNone(t *testing.T) {
	i := Installation{Config: new("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nmemory: {availablePercent: 500}\n")}
	if cfg, err := i.Configuration(); cfg != nil || err == nil {
		t.Errorf("%v, %v", cfg, err)
	}
}
