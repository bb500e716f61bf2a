package consumers

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// Probe is a probe whose bad samples name the groups that took the scarce resource. A sample never
// waits until the processes have been read: Run reads them on its own goroutine, and later samples
// contain the finding.
type Probe struct {
	probes.Measurer

	reader  *Reader
	measure [2]string // the names of what is left and of all
	// wanted has what the newest sample wants to be read.
	wanted   chan Want
	measures []probes.Measure

	mu         sync.Mutex
	course     Course
	unreadable string
}

// Name returns a probe of memory or tasks that names consumers.
func Name(inner probes.Measurer, reader *Reader) *Probe {
	p := &Probe{Measurer: inner, reader: reader, measure: [2]string{"available", "total"}, wanted: make(chan Want, 1)}
	if inner.Condition() == probes.PIDPressure {
		p.course.Resource, p.measure = Tasks, [2]string{"free_tasks", "task_limit"}
	}
	return p
}

// Observe takes a sample, and adds the culprit that was found before it.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	o := p.Measurer.Observe(ctx)
	if want := p.follow(o); want != Nothing {
		select {
		case p.wanted <- want:
		default: // it is about to be read
		}
	}
	return p.explain(o)
}

// ObserveAndRead takes a sample, and reads the processes first if they are wanted. It is for a
// command that can wait, where Run does not run.
func (p *Probe) ObserveAndRead(ctx context.Context) probes.Observation {
	o := p.Measurer.Observe(ctx)
	p.read(p.follow(o))
	return p.explain(o)
}

// Run runs the inner probe, and reads the processes when they are wanted, until the context
// ends.
func (p *Probe) Run(ctx context.Context) {
	var inner sync.WaitGroup
	inner.Go(func() { p.Measurer.Run(ctx) })
	defer inner.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case want := <-p.wanted:
			p.read(want)
		}
	}
}

func (p *Probe) follow(o probes.Observation) Want {
	host := p.host()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.course.Follow(o, host, hostfile.Clock(unix.CLOCK_BOOTTIME))
}

// host returns what there was of the resource at the newest sample.
func (p *Probe) host() (h Host) {
	p.measures = p.Measures(p.measures[:0])
	for i := range p.measures {
		switch m := &p.measures[i]; m.Name {
		case p.measure[0]:
			h.Left = m.Value
		case p.measure[1]:
			h.Total = m.Value
		}
	}
	return h
}

// read reads the processes, if they are wanted and there is room for that.
func (p *Probe) read(want Want) {
	s, err := p.reader.Read(want, hostfile.Clock(unix.CLOCK_BOOTTIME))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.unreadable = err.Error()
	case s != nil:
		p.unreadable = ""
		p.course.Add(s)
	}
}

// explain returns a bad sample with the finding.
func (p *Probe) explain(o probes.Observation) probes.Observation {
	if o.Level <= probes.OK {
		return o
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Culprit = p.course.Finding().Culprit(); o.Culprit == (probes.Culprit{}) {
		o.Culprit.Unreadable = p.unreadable
	}
	if text := p.course.Finding().Text(); text != "" {
		o.Message += "; " + text
		o.Culprit.IsTold = true
	}
	return o
}

const (
	// waits is for how many times its cost nothing is read after a reading: at most 1 % of
	// one CPU.
	waits = 100
	// advances is how many readings may be taken in advance, when a condition comes near
	// its threshold and when it is bad.
	advances = 2
)

// allowance is the time that reading may take. Over any time it is 1 % of one CPU, and
// three readings.
type allowance struct {
	paidAt time.Duration // when all readings are paid
	cost   time.Duration // of the last one
}

// has reports whether there is room for a reading now.
func (a *allowance) has(want Want, now time.Duration) bool {
	until := a.paidAt
	if want == Now {
		until -= advances * waits * a.cost
	}
	return want != Nothing && now >= until
}

// pay takes in what a reading cost.
func (a *allowance) pay(now, cost time.Duration) {
	a.paidAt, a.cost = max(a.paidAt, now)+waits*cost, cost
}
