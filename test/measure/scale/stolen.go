package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

// soonBeside is how soon a taint has to come beside a stolen token, if it comes sooner
// beside an account without rights.
const soonBeside = 3 * time.Second

// floods is of how many the median is taken. Machines are noisy.
const floods = 3

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
	const annotations = 20_000
	var stolen, other []time.Duration
	for range floods {
		delay, err := r.beside(ctx, cluster.LargePatch(r.setup.as(r.setup.Tokens[r.nodes[0]]), r.nodes[0], annotations))
		if err != nil {
			return false, err
		}
		stolen = append(stolen, delay)
		if delay, err = r.beside(ctx, cluster.LargeReview(r.setup.as(r.setup.Foreign), annotations)); err != nil {
			return false, err
		}
		other = append(other, delay)
		fmt.Printf("the taint came after %s beside a stolen token, and after %s beside an account without rights\n", seconds(stolen[len(stolen)-1]), seconds(delay))
	}
	slices.Sort(stolen)
	slices.Sort(other)
	delay, without := stolen[floods/2], other[floods/2]
	holds = delay <= soonBeside || delay <= without*3/2 // machines are noisy
	fmt.Printf("%d nodes, %d connections, %d annotations, median of %d floods: the taint came after %s beside a stolen token, and after %s beside an account without rights: %s\n",
		len(r.nodes), r.options.stolen, annotations, floods, seconds(delay), seconds(without), rulingOf(holds))
	return holds, nil
}

// beside measures how late a taint is beside a flood. A new API server knows nothing of the
// flood before: the demand for seats of a priority level is remembered for minutes, and the
// one that was flooded before would keep its seats.
func (r *run) beside(ctx context.Context, request cluster.LargeRequest) (delay time.Duration, err error) {
	if err := r.cluster.RestartAPIServer(ctx); err != nil {
		return 0, err
	}
	if err := process.Pause(ctx, 3*settle); err != nil {
		return 0, err
	}
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
