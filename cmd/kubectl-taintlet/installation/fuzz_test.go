package installation

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzChangedByHand checks that the managed fields of any object can be read, and that only a
// manager that is in them is named.
func FuzzChangedByHand(f *testing.F) {
	for _, text := range []string{
		`[]`, `[{}]`, `[{"manager":"helm","fieldsV1":{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}}}},{"manager":"kubectl","time":"2026-01-31T12:00:00Z","fieldsV1":{"f:spec":{}}}]`,
		`[{"manager":"a","fieldsV1":7},{"manager":"b","fieldsV1":null}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var managed []metav1.ManagedFieldsEntry
		if json.Unmarshal(text, &managed) != nil {
			return
		}
		manager, at := ChangedByHand(managed)
		if !at.IsZero() {
			for _, entry := range managed {
				if entry.Manager == manager && entry.Time.Time.Equal(at) {
					return
				}
			}
			t.Errorf("%q is not in %s", manager, text)
		}
	})
}

// FuzzRelease checks that the release of an image or of a version is a part of its text.
func FuzzRelease(f *testing.F) {
	for _, text := range []string{"", "a/b:v0.1.0@sha256:00", "0.1.0", "localhost:5000/a", "a:v1.2.3-4-gabc", ":", "@", "v1.2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if version := VersionOf(text); !strings.Contains(text, version) {
			t.Errorf("the version of %q is %q", text, version)
		}
		if found := ReleaseOf(text); !strings.Contains(text, found) || found != "" && strings.Count(found, ".") != 2 {
			t.Errorf("the release of %q is %q", text, found)
		}
	})
}
