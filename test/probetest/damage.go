package probetest

import (
	"os"
	"path/filepath"
	"strings"
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

// SaidOf is what the probe says of the healthy host after that damage. It names files
// as on a host: without the test's folder.
func SaidOf(t *testing.T, probe func(probes.Host) probes.Probe, damage func(probes.Host)) probes.Observation {
	t.Helper()
	h := CopyOfHealthy(t)
	damage(h)
	o := Observe(t, probe(h))
	o.Message = strings.ReplaceAll(o.Message, h.Root, "")
	return o
}

// Block puts a folder in the place of the host's file at path, so that it is there and
// cannot be read.
func Block(t testing.TB, h probes.Host, path string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(h.Root, path)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.Root, path), 0o700); err != nil {
		t.Fatal(err)
	}
}
