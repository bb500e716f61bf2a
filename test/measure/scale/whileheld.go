package main

import (
	"context"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// whileHeld measures the controller while all Nodes are held, restarts all agents,
// and measures again with half of the Nodes.
func (r *run) whileHeld(ctx context.Context) error {
	n := len(r.nodes)
	if err := r.status(ctx); err != nil {
		return err
	}
	if err := r.heldNow(ctx); err != nil {
		return err
	}
	if err := r.restartAll(ctx); err != nil {
		return err
	}
	if err := r.level("OK", 0, n/2); err != nil {
		return err
	}
	if err := r.view.until(ctx, n-n/2); err != nil {
		return err
	}
	if err := process.Pause(ctx, settle); err != nil {
		return err
	}
	return r.heldNow(ctx)
}

// heldNow measures the controller while as many Nodes are held as now are.
func (r *run) heldNow(ctx context.Context) error {
	var h held
	h.Nodes, _, _ = r.view.now()
	metrics, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	w := window{From: time.Now()}
	c, err := r.during(ctx, func() error { return process.Pause(ctx, r.options.observed) })
	if err != nil {
		return err
	}
	w.To = w.From.Add(r.options.observed)
	after, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	for policy, mean := range evaluations(metrics, after) {
		r.f.Admission[fmt.Sprintf("policy %s, mean for each write of the controller, %d held", policy, h.Nodes)] = mean
	}
	h.Seconds, h.Cores, h.APIServer = c.Seconds, c.Cores[cluster.ControllerManager], c.Cores[cluster.APIServer]
	at := len(r.f.Held)
	r.f.Held = append(r.f.Held, h)
	r.later = append(r.later, func(l log) {
		r.f.Held[at].Patches = float64(len(l.of(controllerUser, w).only("patch", "nodes"))) / r.options.observed.Minutes()
	})
	return nil
}
