package main

import (
	"context"
	"github.com/taintlet/taintlet/test/bed"
	"net/http"
	"slices"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// untold is how long what has changed may wait to be told: updatesWithin in
// agent/decide.
const untold = time.Minute

// restartAll restarts all agents, a tenth at a time.
func (r *run) restartAll(ctx context.Context) (err error) {
	s := &r.f.Restart
	var changes int
	s.Held, _, changes = r.view.now()
	w, started := window{From: time.Now()}, map[string]time.Time{}
	if err := r.agents.tell(command{Op: "restart", Over: r.options.restart, Count: len(r.nodes)}, &started); err != nil {
		return err
	}
	s.Took = time.Since(w.From)
	if err := process.Pause(ctx, 2*settle); err != nil {
		return err
	}
	w.To = time.Now()
	_, _, after := r.view.now()
	s.TaintChanges = after - changes
	if s.Foreign, s.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		s.Requests, s.Peak = len(own), own.peak()
		again := own.since(started).done() // who met a newer version of the Node wrote nothing
		node, status := again.only("patch", "nodes"), again.only("patch", "nodes/status").early(l.of(bed.User, window{To: w.To}).done())
		s.MostWrites, s.MostStatus, s.MostInAll = most(node), most(status), most(slices.Concat(node, status))
		s.TooMany, _ = own.refused()
		s.PerAgent = r.perAgent(own)
	})
	return nil
}

func most(l log) int {
	most := 0
	for _, count := range l.byNode() {
		most = max(most, count)
	}
	return most
}

// outage kills the API server and starts it again.
func (r *run) outage(ctx context.Context) (err error) {
	// What is yet to be told of the last incident is no news of the crash.
	if err := process.Pause(ctx, untold); err != nil {
		return err
	}
	o := &r.f.Outage
	_, _, changes := r.view.now()
	w := window{From: time.Now()}
	if err := r.cluster.RestartAPIServer(ctx); err != nil {
		return err
	}
	o.Down = time.Since(w.From)
	if err := process.Pause(ctx, 2*r.options.observed); err != nil {
		return err
	}
	w.To = time.Now()
	_, _, after := r.view.now()
	o.TaintChanges = after - changes
	if o.Foreign, o.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		o.Requests, o.Peak, o.PerAgent = len(own), own.peak(), r.perAgent(own)
		o.TooMany, _ = own.refused()
		back := map[string]time.Time{}
		for _, request := range own.only("watch", "nodes") {
			if _, known := back[nodeOf(request)]; !known && request.ResponseStatus.Code == http.StatusOK {
				back[nodeOf(request)] = request.RequestReceivedTimestamp
				o.Back = request.RequestReceivedTimestamp.Sub(w.From)
			}
		}
		if len(back) < len(r.nodes) {
			o.Back = -1
		}
	})
	return nil
}
