package main

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// untold is how long what has changed may wait to be told: updatesWithin in
	// agent/decide.
	untold = time.Minute
	// batches is in how many parts a rolling restart goes through the fleet: the
	// DaemonSet's maxUnavailable is 10 %.
	batches = 10
)

// restartAll restarts all agents, a tenth at a time, while all Nodes are tainted. Their
// EndpointSlices are written as the pods go and come.
func (r *run) restartAll(ctx context.Context) error {
	if err := r.brakeAt(ctx, 0); err != nil {
		return err
	}
	if err := r.taint(ctx, len(r.nodes)); err != nil {
		return err
	}
	if err := process.Pause(ctx, untold); err != nil { // what the incident left to tell
		return err
	}
	s := &r.f.Restart
	s.Held, _, _ = r.view.now()
	started := map[string]time.Time{}
	writes, err := r.slices.settled(ctx)
	if err != nil {
		return err
	}
	w, err := r.spell(ctx, &s.spell, func() error {
		if err := r.restartBatches(ctx, started); err != nil {
			return err
		}
		return process.Pause(ctx, 2*settle)
	})
	if err != nil {
		return err
	}
	after, err := r.slices.settled(ctx)
	s.SliceWrites = after - writes
	r.later = append(r.later, func(l log) {
		again := l.of(bed.User, w).since(started).done() // who met a newer version of the Node wrote nothing
		node, status := again.only("patch", "nodes"), again.only("patch", "nodes/status").early(l.of(bed.User, window{To: w.To}).done())
		s.MostWrites, s.MostStatus, s.MostInAll = most(node), most(status), most(slices.Concat(node, status))
	})
	return err
}

// restartBatches restarts one batch after another. It keeps when each agent was started.
func (r *run) restartBatches(ctx context.Context, started map[string]time.Time) error {
	begin, n := time.Now(), len(r.nodes)
	for batch := range batches {
		if err := process.Pause(ctx, time.Until(begin.Add(r.options.restart*time.Duration(batch)/batches))); err != nil {
			return err
		}
		first := n * batch / batches
		count := n*(batch+1)/batches - first
		r.slices.change(first, count, terminating)
		if _, err := r.slices.settled(ctx); err != nil {
			return err
		}
		if err := r.agents.tell(command{Op: "restart", First: first, Count: count}, &started); err != nil {
			return err
		}
		for _, state := range podStates() {
			r.slices.change(first, count, state)
			if _, err := r.slices.settled(ctx); err != nil {
				return err
			}
		}
	}
	r.f.Restart.Took = time.Since(begin)
	return nil
}

func most(l log) int {
	most := 0
	for _, count := range l.byNode() {
		most = max(most, count)
	}
	return most
}

// rewritten measures what idle agents ask for after all their EndpointSlices have
// changed, as a roll-out of the DaemonSet changes them.
func (r *run) rewritten(ctx context.Context) error {
	if err := r.taint(ctx, 0); err != nil {
		return err
	}
	s := &r.f.Slices
	writes, err := r.slices.settled(ctx)
	if err != nil {
		return err
	}
	if _, err := r.spell(ctx, &s.spell, func() error {
		for _, state := range podStates() {
			r.slices.change(0, len(r.nodes), state)
			if _, err := r.slices.settled(ctx); err != nil {
				return err
			}
		}
		return process.Pause(ctx, r.options.refresh)
	}); err != nil {
		return err
	}
	after, err := r.slices.settled(ctx)
	s.Writes = after - writes
	return err
}

// outage kills the API server and starts it again.
func (r *run) outage(ctx context.Context) error {
	if err := r.taint(ctx, 0); err != nil {
		return err
	}
	// What is yet to be told of the last incident is no news of the crash.
	if err := process.Pause(ctx, untold); err != nil {
		return err
	}
	o := &r.f.Outage
	w, err := r.spell(ctx, &o.spell, func() error {
		begin := time.Now()
		if err := r.cluster.RestartAPIServer(ctx); err != nil {
			return err
		}
		o.Down = time.Since(begin)
		return process.Pause(ctx, 2*r.options.observed)
	})
	r.later = append(r.later, func(l log) {
		back := map[string]time.Time{}
		for _, request := range l.of(bed.User, w).only("watch", "nodes") {
			if _, known := back[nodeOf(request)]; !known && request.ResponseStatus.Code == http.StatusOK {
				back[nodeOf(request)] = request.RequestReceivedTimestamp
				o.Back = request.RequestReceivedTimestamp.Sub(w.From)
			}
		}
		if len(back) < len(r.nodes) {
			o.Back = -1
		}
	})
	return err
}
