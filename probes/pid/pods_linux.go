package pid

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/cgroup"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// newPods finds the limits that kubelets have set for all their pods together
// (--system-reserved, --kube-reserved or pid limits).
func newPods(h probes.Host) *cgroup.Pods { return cgroup.NewPods(h.Sys, "pids", "pids.max") }

// readPods returns the tightest limit of pods and how many tasks these have. It is nil
// where there is no limit, or where the control groups of the host are not visible.
func readPods(groups *cgroup.Pods) (*budget, error) {
	var tightest *budget
	for _, path := range groups.Files(time.Now()) {
		b, err := readPodTasks(path)
		if err != nil {
			return nil, err
		}
		if b != nil && (tightest == nil || b.share() < tightest.share()) {
			tightest = b
		}
	}
	return tightest, nil
}

// readPodTasks reads one limit and how many tasks there are, which may be none;
// nil where there is no limit.
func readPodTasks(path string) (*budget, error) {
	limit, err := hostfile.Parse(path, "PodsPIDsMax", "a limit", parseCountOr("max\n"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && limit == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	used, err := hostfile.Parse(filepath.Join(filepath.Dir(path), "pids.current"), "PodsPIDsCurrent", "a limit", parseCountOr("0\n"))
	if err != nil {
		return nil, err
	}
	return &budget{used, limit, "pids.max of all pods"}, nil
}
