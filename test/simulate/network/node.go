package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// never is later than all that happens.
const never = time.Duration(math.MaxInt64)

// span is a time in which something is broken.
type span struct{ from, to time.Duration }

func from(t time.Duration) span         { return span{t, never} }
func (s span) has(t time.Duration) bool { return s.to != 0 && s.from <= t && t < s.to }

// spans are times that follow one another.
type spans []span

func (all spans) has(t time.Duration) bool { return all.since(t) != never }

// since returns when the span began that has t, or never.
func (all spans) since(t time.Duration) time.Duration {
	for _, s := range all {
		if s.has(t) {
			return s.from
		}
	}
	return never
}

// faults are those of one node.
type faults struct {
	cut     span // from all peers, not from the API server
	in, out span // its port is blocked for others; others' ports for it
	vxlan   span // its overlay
	dns     span // its DNS alone
	local   span // a network daemon of it
	hole    span // full packets to it or from it get lost
	// daemonless: its network daemon was removed for good, so that nothing is known of
	// one. That a closed port says so is shown in probes/network/ask.
	daemonless span
	api        span  // its way to the API server
	dead       spans // without power
	lossy      span
	// cordoned for days: its host is there.
	cordoned bool
	// forges: its condition says that it suspects itself, from the start on, and it does not.
	forges  bool
	loss    float64 // share of packets, each way
	oneWay  bool    // loss of what comes in only
	apiLoss bool    // also on the way to the API server
}

// shown is what others may know of a node, from a time on.
type shown struct {
	at       time.Duration
	suspects bool
	answer   verdict.Answer
}

// node is a simulated host with an agent.
type node struct {
	faults
	name   string
	zone   int
	side   int // of a split fleet
	peers  []int
	broken bool // it ought to be accused

	random    *rand.Rand
	seed      uint64 // of the judge
	judge     *verdict.Evaluator
	turns     *verdict.Rotation
	alert     bool // its newest verdict was not quite OK
	calm      int  // rounds since one was not
	results   map[verdict.Class]verdict.Result
	debounce  decide.Debouncer
	due       time.Duration // of the next round
	because   string        // when it was first accused
	accusedAt time.Duration // never: not

	answers, conditions []shown // newest last
	asideAt             time.Duration
	seen                map[verdict.Class]bool
	secondPorts         map[string]bool // that were reached
	kubelet             time.Duration   // when it renews its Lease
}

// startAgent starts the agent anew: it remembers what its Node shows, and nothing else.
func (n *node) startAgent() {
	n.judge, n.turns = verdict.NewEvaluator(period, n.seed), verdict.NewRotation(period)
	n.seen, n.secondPorts = map[verdict.Class]bool{}, map[string]bool{}
	n.alert, n.calm, n.results = false, 0, nil
}

// latest is what was shown at a time.
func latest(all []shown, t time.Duration) shown {
	for i, s := range slices.Backward(all) {
		if s.at <= t {
			return all[i]
		}
	}
	return shown{}
}

// push adds what is shown from a time on. Few are kept.
func push(all []shown, s shown) []shown {
	if len(all) >= 4 {
		all = append(all[:0], all[len(all)-3:]...)
	}
	return append(all, s)
}

// interval is the time to the next round after t, as in agent/sampling/runner.go.
func (n *node) interval(o probes.Observation, t time.Duration) time.Duration {
	interval := period
	if o.Level != probes.OK || n.debounce.Level != probes.OK {
		interval = 4 * time.Second
	}
	switch {
	case n.debounce.Level != probes.OK:
		return interval
	case o.Level > probes.OK:
		return time.Second
	case !o.Due.IsZero():
		return min(interval, max(time.Second, o.Due.Sub(epoch.Add(t))))
	}
	return interval
}

// decide takes in a verdict.
func (n *node) decide(o probes.Observation, c decide.Debounce, t time.Duration) {
	now := epoch.Add(t)
	n.debounce = n.debounce.Next(o, now)
	if target := n.debounce.Target(c, now); target != n.debounce.Level {
		n.debounce = n.debounce.Enter(target, c, now)
		if target == probes.Degraded && n.accusedAt == never {
			n.accusedAt, n.because = t, o.Reason+": "+o.Message
		}
	}
}

// publish writes the Node's condition when it is new: a level and a suspicion at
// once, the end of a suspicion once a minute. The write takes up to 2 s.
func (n *node) publish(o probes.Observation, t time.Duration) {
	bad := n.debounce.Level == probes.Degraded
	suspects := bad || o.Suspicion
	if latest(n.conditions, never).suspects == suspects {
		return
	}
	if !bad {
		if !suspects && n.asideAt != 0 && t-n.asideAt < time.Minute {
			return
		}
		n.asideAt = t
	}
	n.conditions = push(n.conditions, shown{at: t + time.Duration(n.random.Int64N(int64(2*time.Second))), suspects: suspects})
}
