package main

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// zones is how many zones there are.
const zones = 3

// braked is a mass incident while the fleet brake is on, and no longer cautious.
func (r *run) braked(ctx context.Context) error {
	return r.longBraked(ctx, "brake on, agents long started", 1)
}

// zoneBraked is that of one zone.
func (r *run) zoneBraked(ctx context.Context) error {
	return r.longBraked(ctx, "one zone, brake on, agents long started", zones)
}

func (r *run) longBraked(ctx context.Context, name string, step int) error {
	if err := r.brakeAt(ctx, r.options.brake); err != nil {
		return err
	}
	if err := process.Pause(ctx, time.Until(r.configured.Add(cautiousFor))); err != nil {
		return err
	}
	return r.incident(ctx, name, step)
}

const brakeOff = "brake off"

// unbraked is a mass incident without the fleet brake.
func (r *run) unbraked(ctx context.Context) error { return r.unbrakedOf(ctx, brakeOff, 1) }

// zone is that of one zone.
func (r *run) zone(ctx context.Context) error { return r.unbrakedOf(ctx, "one zone, brake off", zones) }

func (r *run) unbrakedOf(ctx context.Context, name string, step int) error {
	if err := r.brakeAt(ctx, 0); err != nil {
		return err
	}
	return r.incident(ctx, name, step)
}

// cautious gives all agents the fleet brake again, and makes all hosts bad while it
// is cautious.
func (r *run) cautious(ctx context.Context) error {
	if _, err := r.reconfigure(ctx, r.options.brake); err != nil {
		return err
	}
	return r.incident(ctx, "brake on, just rolled out", 1)
}

// incident makes the memory of all hosts, or of every so many, bad at the same moment,
// measures what follows, and makes it well again.
func (r *run) incident(ctx context.Context, name string, step int) error {
	if err := r.taint(ctx, 0); err != nil {
		return err
	}
	in := &incident{Name: name, Bad: (len(r.nodes) + step - 1) / step}
	r.f.Incidents = append(r.f.Incidents, in)
	if err := r.observe(ctx, in, step); err != nil {
		return err
	}
	well := time.Now()
	if err := r.level("OK", 0, len(r.nodes)); err != nil {
		return err
	}
	if err := r.view.until(ctx, 0); err != nil {
		return err
	}
	in.Cleared = time.Since(well)
	return process.Pause(ctx, settle)
}

// observe makes the memory of hosts bad and measures what follows.
func (r *run) observe(ctx context.Context, in *incident, step int) error {
	before, err := r.report()
	if err != nil {
		return err
	}
	var last time.Time
	w, err := r.spell(ctx, &in.spell, func() error {
		bad := command{Op: "level", Level: "Degraded", Count: len(r.nodes), Step: step}
		if err := r.agents.tell(bad, nil); err != nil {
			return err
		}
		err := process.Pause(ctx, r.options.observed)
		in.Tainted, last, _ = r.view.now()
		return err
	})
	if err != nil {
		return err
	}
	if in.Tainted > 0 {
		in.Last = last.Sub(w.From)
	}
	after, err := r.report()
	in.Sent, in.Received = after.Sent-before.Sent, after.Received-before.Received
	return err
}
