package main

import (
	"context"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// rollOut gives all agents a configuration without the fleet brake.
func (r *run) rollOut(ctx context.Context) error {
	if err := r.taint(ctx, 0); err != nil {
		return err
	}
	o := &r.f.Rollout
	if _, err := r.spell(ctx, &o.spell, func() (err error) {
		o.InForce, err = r.reconfigure(ctx, 0)
		return err
	}); err != nil {
		return err
	}
	r.later = append(r.later, func(log) { o.PerAgent = float64(o.Requests) / float64(len(r.nodes)) })
	return process.Pause(ctx, settle)
}

// reconfigure changes the configuration, waits until it is in force on all, and returns
// how long that took.
func (r *run) reconfigure(ctx context.Context, brake int) (time.Duration, error) {
	const inForce = "configuration in force"
	before, err := r.report()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := r.configure(brake); err != nil {
		return 0, err
	}
	err = eventually(ctx, patience, func() error {
		now, err := r.report()
		if done := now.Log[inForce] - before.Log[inForce]; err == nil && done < len(r.nodes) {
			err = fmt.Errorf("it is in force on %d nodes", done)
		}
		return err
	})
	r.configured = time.Now()
	return time.Since(begin), err
}
