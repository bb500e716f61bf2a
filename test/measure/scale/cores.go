package scale

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// quotaPeriod is the length of a period. Processes that have used their quota wait for the next one.
const quotaPeriod = 100 * time.Millisecond

// limitCores restricts etcd and the API server together to that many processors, as if they ran on a
// smaller machine. It uses a control group of either version, which stays for the next run.
func limitCores(c *cluster.Cluster, cores float64) error {
	quota, period := int64(cores*float64(quotaPeriod.Microseconds())), quotaPeriod.Microseconds()
	group, limits := "/sys/fs/cgroup/cpu/taintlet-scale", map[string]string{"cpu.cfs_period_us": fmt.Sprint(period), "cpu.cfs_quota_us": fmt.Sprint(quota)}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group, limits = "/sys/fs/cgroup/taintlet-scale", map[string]string{"cpu.max": fmt.Sprintf("%d %d", quota, period)}
	}
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as systemd makes them
		return err
	}
	for name, limit := range limits {
		if err := os.WriteFile(filepath.Join(group, name), []byte(limit), 0o600); err != nil {
			return err
		}
	}
	running := c.Processes()
	for _, name := range []string{cluster.Etcd, cluster.APIServer} {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(running[name])), 0o600); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
