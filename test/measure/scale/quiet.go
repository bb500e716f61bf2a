package main

import (
	"context"

	"github.com/taintlet/taintlet/test/bed"
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

// idle measures what the agents do while nothing happens.
func (r *run) idle(ctx context.Context) error {
	before, err := r.report()
	if err != nil {
		return err
	}
	q, s := &r.f.Quiet, &spell{}
	w, err := r.spell(ctx, s, func() error { return process.Pause(ctx, r.options.idle) })
	if err != nil {
		return err
	}
	after, err := r.report()
	if err != nil {
		return err
	}
	perHour := float64(len(r.nodes)) * w.hours()
	q.Seconds, q.Sent, q.Received = s.Seconds, float64(after.Sent-before.Sent)/perHour, float64(after.Received-before.Received)/perHour
	q.TooMany = int(after.TooMany - before.TooMany)
	q.Foreign, q.Leases, r.f.Idle = s.Foreign, s.Leases, s.Cost
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		q.PerHour, q.Heartbeats = map[string]float64{}, own.heartbeats()
		for kind, count := range own.byKind() {
			q.PerHour[kind] = float64(count) / perHour
		}
	})
	return nil
}
