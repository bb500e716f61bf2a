package pid

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/cgroup"
	"github.com/taintlet/taintlet/probes/trend"
)

// Probe watches how many tasks (processes and their threads) the host may still
// start, and how fast that number falls. Where all pods together have a limit and
// it is tighter than the host's, that limit counts.
type Probe struct {
	probes.PeriodOnly

	host       probes.Host
	thresholds Thresholds
	pods       *cgroup.Pods
	budget     budget      // of the newest sample that could be read
	known      bool        // the newest sample could be read
	slope      trend.Slope // of the budget's free tasks
	pace       trend.Pace  // of the budget's free tasks
}

// New returns the probe of the host's tasks. It reads loadavg,
// sys/kernel/pid_max and sys/kernel/threads-max in h.Proc and, where it is
// visible, the pids limit of the pods' control group in h.Sys. It does not walk
// the processes.
func New(h probes.Host, t Thresholds) *Probe {
	return &Probe{host: h, thresholds: t, pods: newPods(h)}
}

// Condition returns PIDPressure.
func (*Probe) Condition() probes.Condition { return probes.PIDPressure }

// Observe takes a sample of the host's tasks and judges it.
func (p *Probe) Observe(context.Context) probes.Observation {
	s, err := readSample(p.host, p.pods)
	if p.known = err == nil; !p.known {
		return probes.UnknownBecause(probes.PIDPressure, err)
	}
	return p.follow(s, time.Now())
}

// follow judges a sample by those before it. When another limit becomes the tightest, or
// the tightest changes, the free tasks before that cannot be compared with the new ones.
func (p *Probe) follow(s sample, now time.Time) probes.Observation {
	b := s.tightest()
	if b.setting != p.budget.setting || b.limit != p.budget.limit {
		p.slope, p.pace = trend.Slope{}, trend.Pace{}
	}
	p.budget = b
	p.slope.Add(now, b.free())
	p.pace.Add(now, b.free())
	o := p.thresholds.judge(s, p.slope)
	if o.Level == probes.OK {
		threshold := p.thresholds.freeTasks(float64(b.limit))
		o.Headroom = p.pace.Headroom(b.free()-threshold, plausiblePace)
	}
	return o
}

// plausiblePace is how many tasks a second a host starts at most before it is
// seen to start more: a fork costs 50 to 100 µs of one CPU.
const plausiblePace = 10_000
