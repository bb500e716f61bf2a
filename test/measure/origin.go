// Package measure has the tests that measure taintlet, a folder for each, and what
// they share: where and when something was measured, and files of results that can be
// compared. Its own tests show what is promised of a whole cluster: how many Nodes evict
// at the same time, with hundreds of agents in one process, and that a cleanup of a
// thousand Nodes leaves nothing of ours and all of others'.
package measure

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// Origin says where and when figures were measured. Figures embed it.
type Origin struct {
	Date, Commit, Machine, Load, Kernel string
	Kubernetes                          string
}

// Here describes this machine and the checkout in that folder, before anything is
// measured. What is not known is "unknown".
func Here(module string) Origin {
	kubernetes, err := cluster.KubernetesVersion()
	if err != nil {
		kubernetes = "unknown"
	}
	return Origin{
		Date: time.Now().Format(time.DateOnly), Commit: commit(module), Machine: machine(), Load: load(), Kernel: kernel(),
		Kubernetes: kubernetes,
	}
}

// String is a sentence for the begin of a page of results.
func (o Origin) String() string {
	return fmt.Sprintf("%s, Linux %s, Kubernetes %s, commit %s. Load before the run: %s.", o.Machine, o.Kernel, o.Kubernetes, o.Commit, o.Load)
}

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

// commit is that of the checkout, with "-dirty" where tracked files differ from it.
// The results of other runs do not count: they change nothing that is measured.
func commit(folder string) string {
	git := func(args ...string) (string, error) {
		command := exec.Command("git", append([]string{"-C", folder}, args...)...) //nolint:noctx,gosec // it ends by itself, with our own arguments
		out, err := command.Output()
		return strings.TrimSpace(string(out)), err
	}
	name, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "unknown"
	}
	if _, err := git("diff", "--quiet", "HEAD", "--", ".", ":(exclude,glob)**/results/**"); err != nil {
		return name + "-dirty"
	}
	return name
}
