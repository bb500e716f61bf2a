package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/taintlet/taintlet/test/cluster"
)

// machine says what this runs on.
func machine() string {
	memory := ""
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib uint64
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf(", %.1f GiB", float64(kib)/(1<<20))
		}
	}
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if _, name, found := strings.Cut(line, "model name\t: "); found {
				model = strings.TrimSpace(name)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores (%s)%s", runtime.NumCPU(), model, memory)
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// load is the average of the last five minutes, before anything began.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		return fields[1]
	}
	return "unknown"
}

func commit(folder string) string {
	git := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*") //nolint:noctx // it ends by itself
	git.Dir = folder
	out, err := git.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func kubernetesVersion() string {
	version, err := cluster.KubernetesVersion()
	if err != nil {
		return "unknown"
	}
	return version
}
