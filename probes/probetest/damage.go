package probetest

import (
	"path/filepath"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// Missing takes the file at path from the healthy host and checks that the
// probe is Unknown for the reason.
func Missing(t *testing.T, path string, probe func(probes.Host) probes.Probe, reason string) {
	t.Helper()
	t.Run(filepath.Base(path)+" missing", func(t *testing.T) {
		t.Parallel()
		Check(t, Observe(t, probe(Without(t, path))), probes.Unknown, reason, filepath.Base(path))
	})
}

// Damaged puts one text after the other into the file at path of the healthy
// host and checks that the probe is Unknown for the reason. The texts have
// names that say what is wrong with them.
func Damaged(t *testing.T, path string, probe func(probes.Host) probes.Probe, reason string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		t.Run(filepath.Base(path)+" "+name, func(t *testing.T) {
			t.Parallel()
			Check(t, Observe(t, probe(With(t, path, text))), probes.Unknown, reason, filepath.Base(path))
		})
	}
}
