package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// whileHeld measures the controller and the keep policy while all Nodes are held, a
// tenth of them and none.
func (r *run) whileHeld(ctx context.Context) error {
	if err := r.brakeAt(ctx, 0); err != nil {
		return err
	}
	for _, count := range []int{len(r.nodes), len(r.nodes) / 10, 0} {
		if err := r.taint(ctx, count); err != nil {
			return err
		}
		if err := process.Pause(ctx, 3*settle); err != nil { // what the change left to do
			return err
		}
		if count == len(r.nodes) {
			if err := r.status(ctx); err != nil {
				return err
			}
		}
		if err := r.heldNow(ctx, count); err != nil {
			return err
		}
	}
	return nil
}

// heldNow measures the controller while so many Nodes are held.
func (r *run) heldNow(ctx context.Context, count int) error {
	h := &held{Nodes: count}
	r.f.Held = append(r.f.Held, h)
	before, err := r.metrics(ctx)
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
	h.Policy = keepTook(before, after)
	h.Seconds, h.Cores, h.APIServer, h.Cost = c.Seconds, c.Cores[cluster.ControllerManager], c.Cores[cluster.APIServer], c
	r.later = append(r.later, func(l log) {
		h.Patches = float64(len(l.of(controllerUser, w).only("patch", "nodes"))) / r.options.observed.Minutes()
	})
	return r.timeWrites(ctx, h)
}

// untaint is how the controller removes a taint.
const untaint = `{"spec":{"taints":null}}`

// timeWrites times writes of the controller, which the keep policy judges, beside those of
// an administrator, which it does not: dry runs in turn, of the first Node.
func (r *run) timeWrites(ctx context.Context, h *held) error {
	config, err := r.cluster.Config(controllerUser, "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
	if err != nil {
		return err
	}
	controller, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	before, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	medians, err := r.timed(ctx, types.MergePatchType, untaint, nil, controller, r.cluster.Client())
	if err != nil {
		return fmt.Errorf("a write as the controller: %w", err)
	}
	after, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	h.Timed, h.WithPolicy, h.WithoutPolicy = keepTook(before, after), medians[0], medians[1]
	return nil
}
