package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// damageOptional is the damage that a file that need not be there can take.
func damageOptional(t *testing.T, path, thing string, garbled map[string]string) {
	t.Helper()
	h := probetest.CopyOfHealthy(t)
	if err := os.MkdirAll(filepath.Join(h.Root, path), 0o700); err != nil {
		t.Fatal(err)
	}
	probetest.Check(t, probetest.Observe(t, New(h, allMemory)), probes.Unknown, thing+"Unreadable", filepath.Base(path))
	probetest.Remove(t, h, path)
	probetest.Check(t, probetest.Observe(t, New(h, allMemory)), probes.OK, "MemorySufficient", "")
	for name, text := range garbled {
		probetest.Write(t, h, path, text)
		o := probetest.Observe(t, New(h, allMemory))
		if o.Level != probes.Unknown || o.Reason != thing+"Garbled" || !strings.Contains(o.Message, filepath.Base(path)) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestPressureDamage(t *testing.T) {
	t.Parallel()
	damageOptional(t, "proc/pressure/memory", "Pressure", map[string]string{
		"empty": "", "binary": probetest.Binary, "no full": "some total=1\n", "cut off": "some total=1\nfull avg10=0.00 tot",
	})
}
