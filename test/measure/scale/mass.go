package main

import (
	"context"
	"github.com/taintlet/taintlet/test/bed"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// incident makes the memory of all hosts bad at the same moment, and well again.
// whileHeld is done in between; nil: nothing.
func (r *run) incident(ctx context.Context, name string, whileHeld func(context.Context) error) error {
	at := len(r.f.Incidents)
	r.f.Incidents = append(r.f.Incidents, incident{Name: name})
	if err := r.observe(ctx, at); err != nil {
		return err
	}
	if whileHeld != nil {
		if err := whileHeld(ctx); err != nil {
			return err
		}
	}
	well := time.Now()
	if err := r.level("OK", 0, len(r.nodes)); err != nil {
		return err
	}
	if err := r.view.until(ctx, 0); err != nil {
		return err
	}
	r.f.Incidents[at].Cleared = time.Since(well)
	return process.Pause(ctx, settle)
}

// observe makes the memory of all hosts bad and measures what follows.
func (r *run) observe(ctx context.Context, at int) error {
	in := &r.f.Incidents[at]
	before, err := r.report()
	if err != nil {
		return err
	}
	w := window{From: time.Now()}
	in.Cost, err = r.during(ctx, func() error {
		if err := r.level("Degraded", 0, len(r.nodes)); err != nil {
			return err
		}
		return process.Pause(ctx, r.options.observed)
	})
	if err != nil {
		return err
	}
	w.To = w.From.Add(r.options.observed)
	var last time.Time
	if in.Tainted, last, _ = r.view.now(); in.Tainted > 0 {
		in.Last = last.Sub(w.From)
	}
	after, err := r.report()
	if err != nil {
		return err
	}
	in.Sent, in.Received = after.Sent-before.Sent, after.Received-before.Received
	if in.Foreign, in.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own, in := l.of(bed.User, w), &r.f.Incidents[at]
		in.Requests, in.Peak, in.PerAgent = len(own), own.peak(), r.perAgent(own)
		in.TooMany, in.Failed = own.refused()
	})
	return nil
}
