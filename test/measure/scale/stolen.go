package main

import (
	"context"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

// soonBeside is how soon a taint has to come beside a stolen token, if it comes sooner
// beside an account without rights.
const soonBeside = 3 * time.Second

// stolen measures how late the taint of one host is while the API server is flooded
// with the token of another agent, and with that of an account without rights. It
// reports whether the first is as soon.
func (r *run) stolen(ctx context.Context) (holds bool, err error) {
	if err := r.start(ctx); err != nil {
		return false, err
	}
	if err := r.idle(ctx); err != nil {
		return false, err
	}
	holds = true
	for _, annotations := range []int{20_000, 200_000} {
		other, err := r.beside(ctx, cluster.LargeReview(r.setup.as(r.setup.Foreign), annotations))
		if err != nil {
			return false, err
		}
		delay, err := r.beside(ctx, cluster.LargePatch(r.setup.as(r.setup.Tokens[r.nodes[0]]), r.nodes[0], annotations))
		if err != nil {
			return false, err
		}
		isSoon := delay <= soonBeside || delay <= other*3/2 // machines are noisy
		holds = holds && isSoon
		fmt.Printf("%d nodes, %d connections, %d annotations: the taint came after %s beside a stolen token, and after %s beside an account without rights: %s\n",
			len(r.nodes), r.options.stolen, annotations, seconds(delay), seconds(other), rulingOf(isSoon))
	}
	return holds, nil
}

func (r *run) beside(ctx context.Context, request cluster.LargeRequest) (delay time.Duration, err error) {
	measure.Say("%s %s on %d connections", request.Verb, request.Path, r.options.stolen)
	end, err := r.cluster.Flood(ctx, r.options.stolen, request)
	if err != nil {
		return 0, err
	}
	if err := process.Pause(ctx, cluster.Underway); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := r.level("Degraded", 1, 1); err != nil {
		return 0, err
	}
	if err := r.view.until(ctx, 1); err != nil {
		return 0, err
	}
	_, at, _ := r.view.now()
	if _, err := end(); err != nil {
		return 0, err
	}
	if err := r.level("OK", 1, 1); err != nil {
		return 0, err
	}
	return at.Sub(begin), r.view.until(ctx, 0)
}
