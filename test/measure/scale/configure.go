package main

import (
	"context"
	"fmt"
	"github.com/taintlet/taintlet/test/bed"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// rollOut gives all agents a configuration without the fleet brake.
func (r *run) rollOut(ctx context.Context) error {
	w, err := r.reconfigure(ctx, 0)
	if err != nil {
		return err
	}
	o := &r.f.Rollout
	o.InForce = w.To.Sub(w.From)
	if o.Foreign, o.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		o.Requests, o.Peak, o.PerAgent = len(own), own.peak(), float64(len(own))/float64(len(r.nodes))
	})
	return process.Pause(ctx, settle)
}

// reconfigure changes the configuration and waits until it is in force on all.
func (r *run) reconfigure(ctx context.Context, brake int) (window, error) {
	const inForce = "configuration in force"
	before, err := r.report()
	if err != nil {
		return window{}, err
	}
	w := window{From: time.Now()}
	if err := r.configure(brake); err != nil {
		return w, err
	}
	err = eventually(ctx, slowest, func() error {
		now, err := r.report()
		if done := now.Log[inForce] - before.Log[inForce]; err == nil && done < len(r.nodes) {
			err = fmt.Errorf("it is in force on %d nodes", done)
		}
		return err
	})
	w.To = time.Now()
	return w, err
}

// cautious gives all agents the fleet brake again, and makes all hosts bad while it
// is cautious.
func (r *run) cautious(ctx context.Context) error {
	if _, err := r.reconfigure(ctx, r.options.brake); err != nil {
		return err
	}
	return r.incident(ctx, "brake on, just rolled out", nil)
}
