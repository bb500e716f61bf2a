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

// podLimits reads the limits that kubelets have set for all their pods together
// (--system-reserved, --kube-reserved or pid limits), and how many tasks these
// have.
type podLimits struct{ groups *cgroup.Pods }

func newPodLimits(h probes.Host) podLimits {
	return podLimits{cgroup.NewPods(h.Sys, "pids", "pids.max")}
}

// read returns the tightest limit of pods, nil where there is none, or where the
// control groups of the host are not visible.
func (p podLimits) read() (*budget, error) {
	var tightest *budget
	for _, path := range p.groups.Files(time.Now()) {
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
	text, err := hostfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && text == "max\n":
		return nil, nil
	case err != nil:
		return nil, probes.Because("PodsPIDsMaxUnreadable", "reading a limit: %w", err)
	}
	limit, err := countOf(path, text, "PodsPIDsMax")
	if err != nil {
		return nil, err
	}
	current := filepath.Join(filepath.Dir(path), "pids.current")
	text, err = hostfile.Read(current)
	switch {
	case err != nil:
		return nil, probes.Because("PodsPIDsCurrentUnreadable", "reading a limit: %w", err)
	case text == "0\n":
		return &budget{0, limit, "pids.max of all pods"}, nil
	}
	used, err := countOf(current, text, "PodsPIDsCurrent")
	if err != nil {
		return nil, err
	}
	return &budget{used, limit, "pids.max of all pods"}, nil
}
