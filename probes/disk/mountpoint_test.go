package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// A path at which the host is to have mounted something is trouble while it has not, whether
// there is such a directory or not. Without the host's mounts nothing is said.
func TestMountPoints(t *testing.T) {
	t.Parallel()
	const root = "25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
	for name, c := range map[string]struct {
		mountinfo, directory string
		level                probes.Level
		reason, message      string
	}{
		"mounted":      {root + "40 25 254:16 / /data rw shared:9 - xfs /dev/vdb rw\n", "data", probes.OK, "SpaceSufficient", ""},
		"not mounted":  {root + "40 25 254:16 / /data/more rw shared:9 - xfs /dev/vdb rw\n", "data", probes.Degraded, "NotMounted", "the host has mounted nothing at /data"},
		"no directory": {root, "other", probes.Degraded, "NotMounted", "the host has mounted nothing at /data"},
		"not known":    {"", "data", probes.OK, "SpaceSufficient", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := probes.Host{Root: t.TempDir(), Proc: t.TempDir()}
			if err := os.MkdirAll(filepath.Join(h.Root, c.directory), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.mountinfo != "" {
				if err := os.Mkdir(filepath.Join(h.Proc, "1"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(h.Proc, "1", "mountinfo"), []byte(c.mountinfo), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := New(h, []string{"/", "/data"}, Thresholds{AvailablePercent: 0.001}).RequireMounts("/data").Observe(t.Context())
			probetest.Check(t, o, c.level, c.reason, c.message)
		})
	}
}
