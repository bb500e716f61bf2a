package network

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// How a suspicion is checked.
const (
	// askSome of the peers that are not reached are asked about.
	askSome = 5
	// askAgain is when others are asked about after an answer.
	askAgain = time.Minute
	// askPatience is how long an answer may take.
	askPatience = 30 * time.Second
)

// suspicionWait is how long a host suspects itself before it asks about others.
// By then all others must have had the time to suspect themselves too. A fault
// may take half a minute to reach the last host, which then needs some rounds to
// see it and a moment to say so. And hosts that lost power are Ready for 50 s,
// plus the 5 s in which the control plane notices (--node-monitor-grace-period,
// --node-monitor-period); the first suspicion comes 10 s after the fault.
func suspicionWait(period time.Duration) time.Duration { return 40*time.Second + 2*period }

// suspicionJitter is added to the wait, so that a fleet does not ask at once.
const suspicionJitter = 10 * time.Second

// stage is how far a suspicion has come.
type stage int8

const (
	calm    stage = iota
	suspect       // nobody was asked about yet
	many          // the others are not better
	accused       // the others are well
)

// suspicion is what a host that does not reach its peers thinks of itself.
type suspicion struct {
	wait   time.Duration
	random *rand.Rand

	stage stage
	due   time.Time // when to ask, again
	// ask has the Nodes whose Standings are awaited, since askedAt.
	ask     []string
	askedAt time.Time
	found   string // what the last answer showed, for people
}

// jittered adds some jitter.
func (s *suspicion) jittered(d time.Duration) time.Duration {
	return d + time.Duration(s.random.Int64N(int64(suspicionJitter)))
}

// begin makes the host suspect itself. It is asked nothing before the others had
// their time.
func (s *suspicion) begin(at time.Time) {
	s.stage, s.due, s.ask, s.found = suspect, at.Add(s.jittered(s.wait)), nil, ""
}

func (s *suspicion) end() { s.stage, s.ask, s.found = calm, nil, "" }

// next takes in a round. low: few peers have been reached for some rounds. said:
// the API server answers, so that what hosts say of themselves can be written
// and read. While it does not, every wait begins anew.
func (s *suspicion) next(r *Round, low, said bool) {
	switch {
	case !low:
		s.end()
		return
	case s.stage == calm, !said:
		s.begin(r.At)
		return
	}
	if s.ask != nil && r.Standings != nil {
		s.answered(r)
	}
	if s.ask != nil && r.At.Sub(s.askedAt) >= askPatience {
		s.ask = nil
	}
	if s.ask == nil && !r.At.Before(s.due) {
		s.ask, s.askedAt = s.draw(r.Peers), r.At
	}
}

// draw chooses some of the peers that are not reached.
func (s *suspicion) draw(peers []PeerResult) []string {
	var nodes []string
	for _, p := range peers {
		if !p.isThere() {
			nodes = append(nodes, p.Node)
		}
	}
	s.random.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
	return nodes[:min(askSome, len(nodes))]
}

// answered takes in what the Nodes that were asked about say of themselves.
func (s *suspicion) answered(r *Round) {
	asked := len(s.ask)
	count, well := 0, 0
	for _, standing := range r.Standings {
		if !slices.Contains(s.ask, standing.Node) || standing.Excused {
			continue
		}
		count++
		if !standing.Suspects {
			well++
		}
	}
	s.ask, s.due = nil, r.At.Add(s.jittered(askAgain))
	s.found = fmt.Sprintf("%d of %d others are well", well, count)
	// Of those that were not asked about, as many are gone or excused.
	reached, all := reachOf(r.Peers)
	live := float64(reached) + float64(all-reached)*float64(count)/float64(max(asked, 1))
	s.stage = many
	if count >= fewestPeers && 2*well > count && float64(100*reached) <= lowPercent*live {
		s.stage = accused
	}
}
