package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

const (
	// settle is how long after something the next thing begins.
	settle = 10 * time.Second
	// patience is how long an end is waited for that must come.
	patience = 5 * time.Minute
	// slowest is how long a roll-out of a configuration may take: maxJitter of
	// package agent, and some.
	slowest = 6 * time.Minute
)

// run measures everything in its order.
type run struct {
	*stage
	f *figures
	// later are done when the audit log has been read.
	later []func(log)
}

// part of a run.
type part struct {
	name string
	do   func(context.Context) error
}

// parts returns what is measured, in its order. A short run has neither roll-outs
// nor the fleet brake.
func (r *run) parts() []part {
	all := []part{
		{"the cluster alone, and with bare watches", r.baseline},
		{"agents start, and are idle", r.idle},
		{"kubectl taintlet status", r.status},
		{"a write with and without policies", r.admission},
		{"TLS connections", r.handshakes},
	}
	if !r.options.short {
		all = append(all,
			part{"an incident with the fleet brake", func(ctx context.Context) error { return r.incident(ctx, "brake on, agents long started", nil) }},
			part{"a configuration is rolled out", r.rollOut})
	}
	all = append(all, part{"an incident without the fleet brake", func(ctx context.Context) error { return r.incident(ctx, "brake off", r.whileHeld) }})
	if !r.options.short {
		all = append(all, part{"the brake is rolled out again, and an incident follows", r.cautious})
	}
	return append(all, part{"the API server restarts", r.outage})
}

// all measures part by part until one fails or the time is over: what was measured
// by then counts.
func (r *run) all(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, r.options.limit)
	defer cancel()
	for _, part := range r.parts() {
		measure.Say("%s", part.name)
		if err := part.do(limited); err != nil {
			r.f.Stopped = fmt.Sprintf("%s: %v", part.name, errors.Join(limited.Err(), err))
			measure.Say("stopped: %s", r.f.Stopped)
			break
		}
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

// perAgent is how many requests of each kind an agent made, on average.
func (r *run) perAgent(l log) map[string]float64 {
	all := map[string]float64{}
	for kind, count := range l.byKind() {
		all[kind] = float64(count) / float64(len(r.nodes))
	}
	return all
}

// others says how those fared within a window who have nothing to do with
// taintlet.
func (r *run) others(w window) (f latency, l leaseReport, err error) {
	err = r.foreign.tell(command{Op: "report", From: w.From, To: w.To}, &f)
	return f, r.kubelets.report(w.From, w.To), err
}
