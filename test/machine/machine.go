// Package machine says what a measurement ran on, for its results.
package machine

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/taintlet/taintlet/test/cluster"
)

// Describe says what the machine is: cores, processor, memory, kernel, and the
// release of Kubernetes that is tested on.
func Describe() string {
	return fmt.Sprintf("%d cores (%s)%s, Linux %s, Kubernetes %s", runtime.NumCPU(), processor(), memory(), kernel(), kubernetes())
}

func memory() string {
	var kib uint64
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return ""
	}
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		return ""
	}
	return fmt.Sprintf(", %.1f GiB", float64(kib)/(1<<20))
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if _, name, found := strings.Cut(line, "model name\t: "); found {
			return strings.TrimSpace(name)
		}
	}
	return "unknown processor"
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func kubernetes() string {
	version, err := cluster.KubernetesVersion()
	if err != nil {
		return "unknown"
	}
	return version
}

// Load is the average load of the last five minutes.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		return fields[1]
	}
	return "unknown"
}

// Commit is the checkout's, with a mark if files in it were changed.
func Commit(folder string) string {
	git := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*") //nolint:noctx // it ends by itself
	git.Dir = folder
	out, err := git.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
