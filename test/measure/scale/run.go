package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// settle is how long after something the next thing begins.
	settle = 10 * time.Second
	// patience is how long an end is waited for that must come.
	patience = 10 * time.Minute
	// cautiousFor is how long the fleet brake is cautious after a start or a new
	// configuration: cautiousFor of agent/decide.
	cautiousFor = 5 * time.Minute
)

// run measures everything in its order.
type run struct {
	*stage
	f *figures
	// bad is how many Nodes have memory that is bad.
	bad int
	// later are done when the audit log has been read.
	later []func(log)
}

// part of a run: its name at the command line, and what it is.
type part struct {
	name, says string
	do         func(*run, context.Context) error
}

const baselinePart = "baseline"

// parts are what a full run measures, in this order.
func parts() []part {
	return []part{
		{baselinePart, "the cluster alone, and with bare watches", (*run).baseline},
		{"idle", "agents are idle", (*run).idle},
		{"status", "kubectl taintlet status", (*run).status},
		{"admission", "a write with and without policies", (*run).admission},
		{"tls", "TLS connections", (*run).handshakes},
		{"braked", "an incident with the fleet brake", (*run).braked},
		{"zone-braked", "a zone fails, with the fleet brake", (*run).zoneBraked},
		{"rollout", "a configuration is rolled out", (*run).rollOut},
		{"incident", "an incident without the fleet brake", (*run).unbraked},
		{"restarts", "the DaemonSet is rolled out while all Nodes are tainted", (*run).restartAll},
		{"held", "the controller while all, some and no Nodes are held", (*run).whileHeld},
		{"zone", "a zone fails, without the fleet brake", (*run).zone},
		{"slices", "agents read EndpointSlices that have changed", (*run).rewritten},
		{"cautious", "the brake is rolled out again, and an incident follows", (*run).cautious},
		{"outage", "the API server restarts", (*run).outage},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// all measures part by part until one fails or the time is over: what was measured
// by then counts.
func (r *run) all(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, r.options.limit)
	defer cancel()
	for _, part := range parts() {
		if !r.options.measures(part.name) {
			continue
		}
		err := error(nil)
		if part.name != baselinePart && r.agents == nil {
			measure.Say("agents start")
			err = r.start(limited)
		}
		if err == nil {
			measure.Say("%s: %s", part.name, part.says)
			err = part.do(r, limited)
		}
		if err != nil {
			r.f.Stopped = fmt.Sprintf("%s: %v", part.says, errors.Join(limited.Err(), err))
			measure.Say("stopped: %s", r.f.Stopped)
			break
		}
		r.f.Parts = append(r.f.Parts, part.name)
	}
	time.Sleep(settle) // also after a signal: the audit log is written, and what was measured counts
	l, err := r.readLog()
	if err != nil {
		return err
	}
	for _, evaluate := range r.later {
		evaluate(l)
	}
	return nil
}

// measures reports whether a part is asked for.
func (o *options) measures(part string) bool {
	return len(o.parts) == 0 || slices.Contains(o.parts, part)
}

// firstBrake is the fleet brake of the agents that start: off, if no part needs it.
func (o *options) firstBrake() int {
	for _, part := range []string{"idle", "braked", "zone-braked", "rollout"} {
		if o.measures(part) {
			return o.brake
		}
	}
	return 0
}

// perAgent is how many requests of each kind an agent made, on average.
func (r *run) perAgent(l log) map[string]float64 {
	all := map[string]float64{}
	for kind, count := range l.byKind() {
		all[kind] = float64(count) / float64(len(r.nodes))
	}
	return all
}

// spell is what the agents did within some time, and how those fared meanwhile who have
// nothing to do with taintlet.
type spell struct {
	Seconds                         float64
	Requests, Peak, TooMany, Failed int // of and to the agents; the peak is of one second
	PerAgent                        map[string]float64
	Foreign                         latency
	Leases                          leaseReport
	TaintChanges                    int
	Cost                            cost
}

// spell measures what happens while do runs, into s, which must not move.
func (r *run) spell(ctx context.Context, s *spell, do func() error) (w window, err error) {
	_, _, changes := r.view.now()
	w.From = time.Now()
	if s.Cost, err = r.during(ctx, do); err != nil {
		return w, err
	}
	_, _, after := r.view.now()
	s.Seconds, s.TaintChanges = s.Cost.Seconds, after-changes
	w.To = w.From.Add(time.Duration(s.Seconds * float64(time.Second)))
	if err := r.foreign.tell(command{Op: "report", From: w.From, To: w.To}, &s.Foreign); err != nil {
		return w, err
	}
	if err := r.kubelets.tell(command{Op: "report", From: w.From, To: w.To}, &s.Leases); err != nil {
		return w, err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		s.Requests, s.Peak, s.PerAgent = len(own), own.peak(), r.perAgent(own)
		s.TooMany, s.Failed = own.refused()
	})
	return w, nil
}

// start starts the agents, and waits until what their start caused is over.
func (r *run) start(ctx context.Context) (err error) {
	if r.agents, err = startChild(ctx, agentsKind, r.folder, r.setup); err != nil {
		return err
	}
	_, err = r.spell(ctx, &r.f.Start, func() error {
		if err := r.agents.tell(command{Op: "start", Over: r.options.ramp, Count: len(r.nodes)}, nil); err != nil {
			return err
		}
		r.configured = time.Now()
		return process.Pause(ctx, 3*settle)
	})
	if err != nil || r.options.measures("idle") {
		return err
	}
	return process.Pause(ctx, time.Minute)
}

// taint makes the memory of the first so many Nodes bad and that of all others well, and
// waits until exactly these are tainted.
func (r *run) taint(ctx context.Context, count int) error {
	if count > r.bad {
		if err := r.level("Degraded", r.bad, count-r.bad); err != nil {
			return err
		}
	} else if count < r.bad {
		if err := r.level("OK", count, r.bad-count); err != nil {
			return err
		}
	}
	r.bad = count
	return r.view.until(ctx, count)
}

// brakeAt gives all agents this fleet brake, if they have another.
func (r *run) brakeAt(ctx context.Context, percent int) error {
	if r.brake == percent {
		return nil
	}
	_, err := r.reconfigure(ctx, percent)
	return err
}
