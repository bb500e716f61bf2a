package main

import (
	"context"
	"github.com/taintlet/taintlet/test/bed"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// baseline measures the cluster without agents.
func (r *run) baseline(ctx context.Context) (err error) {
	if err := process.Pause(ctx, settle); err != nil {
		return err
	}
	quiet := func() error { return process.Pause(ctx, r.options.base) }
	if r.f.Base, err = r.during(ctx, quiet); err != nil {
		return err
	}
	w, err := startChild(ctx, watchesKind, r.folder, r.setup)
	if err != nil {
		return err
	}
	if err := w.tell(command{Op: "start"}, nil); err != nil {
		return err
	}
	if err := process.Pause(ctx, settle); err != nil {
		return err
	}
	if r.f.Watches, err = r.during(ctx, quiet); err != nil {
		return err
	}
	return w.end()
}

// idle starts the agents and measures what they do while nothing happens.
func (r *run) idle(ctx context.Context) (err error) {
	if r.agents, err = startChild(ctx, agentsKind, r.folder, r.setup); err != nil {
		return err
	}
	if err := r.agents.tell(command{Op: "start", Over: r.options.ramp, Count: len(r.nodes)}, nil); err != nil {
		return err
	}
	if err := process.Pause(ctx, 3*settle); err != nil {
		return err
	}
	before, err := r.report()
	if err != nil {
		return err
	}
	w := window{From: time.Now()}
	if r.f.Idle, err = r.during(ctx, func() error { return process.Pause(ctx, r.options.idle) }); err != nil {
		return err
	}
	w.To = w.From.Add(time.Duration(r.f.Idle.Seconds * float64(time.Second)))
	after, err := r.report()
	if err != nil {
		return err
	}
	q := &r.f.Quiet
	perHour := float64(len(r.nodes)) * w.hours()
	q.Seconds, q.Sent, q.Received = w.To.Sub(w.From).Seconds(), float64(after.Sent-before.Sent)/perHour, float64(after.Received-before.Received)/perHour
	q.TooMany = int(after.TooMany - before.TooMany)
	if q.Foreign, q.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		q.PerHour, q.Heartbeats = map[string]float64{}, own.heartbeats()
		for kind, count := range own.byKind() {
			q.PerHour[kind] = float64(count) / perHour
		}
	})
	return nil
}
