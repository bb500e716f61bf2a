package pid

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// podLimits reads the limits that kubelets have set for all their pods together
// (--system-reserved, --kube-reserved or pid limits), and how many tasks these
// have.
type podLimits struct {
	sys string
	// found are the control groups of pods, as they were when they were looked
	// for last.
	found    []string
	lookedAt time.Time
}

// lookAgain is how often the control groups of pods are looked for: a kubelet may
// start after the agent. One that is gone is looked for at once.
const lookAgain = time.Minute

// podGroups are the names of the control group of all pods, below the root of the
// hierarchy (v2) or of the controller (v1): with the driver systemd and with
// cgroupfs, and where the kubelet has a --cgroup-root of one name, such as the
// /kubelet of kind (cgroupName.ToSystemd in
// pkg/kubelet/cm/cgroup_manager_linux.go).
func podGroups() []string {
	return []string{"kubepods.slice", "kubepods", "*.slice/*-kubepods.slice", "*/kubepods"}
}

// find looks for the control groups of pods.
func (p *podLimits) find(now time.Time) error {
	p.found, p.lookedAt = nil, now
	for _, hierarchy := range []string{"", "pids"} {
		for _, name := range podGroups() {
			match, err := filepath.Glob(filepath.Join(p.sys, "fs", "cgroup", hierarchy, name, "pids.max"))
			if err != nil {
				return probes.Because("PodsPIDsMaxUnreadable", "looking for the control group of all pods: %w", err)
			}
			p.found = append(p.found, match...)
		}
	}
	return nil
}

// read returns the tightest limit of pods, nil where there is none, or where the
// control groups of the host are not visible.
func (p *podLimits) read() (*budget, error) {
	now := time.Now()
	if since := now.Sub(p.lookedAt); since < 0 || since >= lookAgain || slices.ContainsFunc(p.found, isGone) {
		if err := p.find(now); err != nil {
			return nil, err
		}
	}
	var tightest *budget
	for _, path := range p.found {
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

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
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
