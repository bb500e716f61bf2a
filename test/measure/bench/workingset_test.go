package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

// workingSetLeaves is what the kubelet's signal memory.available means, in
// bytes: the host's memory less the root cgroup's working set, which is its use
// without file pages that have not been used recently (setMemoryStats in
// container/libcontainer/handler.go of cAdvisor).
func workingSetLeaves() (uint64, error) {
	memory, err := process.ReadHostMemory()
	if err != nil {
		return 0, err
	}
	used, idle, err := rootCgroup("/sys/fs/cgroup")
	if err != nil {
		return 0, fmt.Errorf("read the root cgroup's memory: %w", err)
	}
	return memory.Total - used + idle, nil
}

// rootCgroup reads what is used, and how much of it are idle file pages. The
// root of cgroup v2 does not say what is used: anonymous and file pages are
// taken for it (rootStatsFromMeminfo in opencontainers/cgroups), which is what
// the root of v1 counts.
func rootCgroup(root string) (used, idle uint64, err error) {
	v1 := filepath.Join(root, "memory")
	text, err := os.ReadFile(filepath.Join(v1, "memory.usage_in_bytes"))
	if errors.Is(err, fs.ErrNotExist) {
		stat, err := readStat(root, "anon", "file", "inactive_file")
		return stat["anon"] + stat["file"], stat["inactive_file"], err
	}
	if err != nil {
		return 0, 0, err
	}
	if used, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
		return 0, 0, err
	}
	stat, err := readStat(v1, "total_inactive_file")
	return used, stat["total_inactive_file"], err
}

// readStat reads lines of a cgroup's memory.stat.
func readStat(cgroup string, names ...string) (map[string]uint64, error) {
	path := filepath.Join(cgroup, "memory.stat")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if values[name], err = strconv.ParseUint(value, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, name := range names {
		if _, has := values[name]; !has {
			return nil, fmt.Errorf("%s has no line %s", path, name)
		}
	}
	return values, nil
}

// checkWorkingSet makes sure that the kubelet sees what workingSetLeaves says.
// Its answer may be some seconds old, and other programs run.
func (s *stage) checkWorkingSet(ctx context.Context) error {
	seen, err := s.kubelet.Memory(ctx)
	if err != nil {
		return err
	}
	left, err := workingSetLeaves()
	if err != nil {
		return err
	}
	apart := max(left, seen.AvailableBytes) - min(left, seen.AvailableBytes)
	measure.Say("memory.available: the kubelet says %s, its root cgroup %s", mebibytes(seen.AvailableBytes), mebibytes(left))
	if apart > s.memory.gap {
		return fmt.Errorf("the kubelet says that %s of memory are available, the root cgroup says %s: the difference is more than the %s by which thresholds are crossed",
			mebibytes(seen.AvailableBytes), mebibytes(left), mebibytes(s.memory.gap))
	}
	return nil
}
