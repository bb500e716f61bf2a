package ask

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// isUp reports whether a daemon listens, which exits so often: first after a minute, and then
// each time that it has run for so long. The kubelet starts it again at once, and later after
// 10 s, 20 s and so on, 5 min at most. It takes a time to start.
func isUp(at time.Duration, exits int, starts, run time.Duration) bool {
	exit, wait := time.Minute, time.Duration(0)
	for range exits {
		if at < exit {
			return true
		}
		back := exit + wait + starts
		if at < back {
			return false
		}
		exit, wait = back+run, min(max(2*wait, 10*time.Second), 5*time.Minute)
	}
	return true
}

// From Kubernetes 1.37 on, kube-proxy exits when the addresses of its Node change, and when the
// Node is deleted. It then waits up to 30 s for a Node with addresses before it listens. Such a
// restart taints no Node, and neither do some in a row. One that crashes again and again does.
func TestRestartsOfADaemonAreNoFailure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		exits  int
		starts time.Duration
		isBad  bool
	}{
		{"its Node has other addresses", 1, 2 * time.Second, false},
		{"its Node was deleted, and comes back later", 1, 30 * time.Minute, false},
		{"its Node was deleted and came back, each time without addresses at first", 2, 35 * time.Second, false},
		{"the addresses change three times", 3, 5 * time.Second, false},
		{"it crashes again and again", 6, 5 * time.Second, true},
	} {
		for _, run := range []time.Duration{5 * time.Second, 11 * time.Second, time.Minute} {
			if got := isEverBad(func(at time.Duration) bool { return isUp(at, test.exits, test.starts, run) }); got != test.isBad {
				t.Errorf("%s, and runs for %v: bad %v", test.name, run, got)
			}
		}
	}
}

// isEverBad reports whether a sample of 35 minutes is bad on a Node whose daemon listens at these
// times, while all peers are well.
func isEverBad(isUp func(at time.Duration) bool) bool {
	const period = 5 * time.Second
	local, evaluator := NewLocal(), verdict.NewEvaluator(period, 1)
	for at := time.Duration(0); at < 35*time.Minute; at += period {
		var err error
		switch wasUp := at >= period && isUp(at-period); {
		case !isUp(at) && wasUp:
			err = syscall.ECONNRESET // its end may cut an answer off
		case !isUp(at):
			err = syscall.ECONNREFUSED
		}
		now := time.Unix(1000, 0).Add(at)
		r := verdict.Round{At: now, Results: map[verdict.Class]verdict.Result{
			verdict.API: {Outcome: verdict.Well}, verdict.Self: {Outcome: verdict.Well},
			verdict.Local: local.evaluate(daemons()[:1], []error{err}, now),
		}}
		for i := range 12 {
			r.Peers = append(r.Peers, verdict.PeerResult{Node: fmt.Sprint("peer-", i), Reached: true, Answer: &verdict.Answer{
				Version: verdict.AnswerVersion, Classes: map[verdict.Class]bool{verdict.Local: true}, Reach: 100,
			}})
		}
		if evaluator.Next(r).Observation.Level >= probes.Degraded {
			return true
		}
	}
	return false
}
