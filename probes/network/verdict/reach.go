package verdict

import "fmt"

// PeersResult returns the result of class Peers. found are the results of those chosen peers that
// count: the others were never reached.
func PeersResult(found []PeerResult, chosen []Peer) Result {
	asked, all, reached := len(found), Nodes(chosen), count(found, func(p *PeerResult) bool { return p.Reached })
	atPort := "" // all agents of a fleet listen at the same
	if len(chosen) > 0 {
		atPort = fmt.Sprintf(" at TCP port %d", chosen[0].Address.Port())
	}
	switch {
	case asked == 0:
		return Result{Never: len(chosen) > 0, Detail: fmt.Sprintf("none of %d peers was ever reached%s", all, atPort)}
	case isFew(asked, all): // a host that was cut off before the start reaches as few
		return Result{Never: true, Detail: fmt.Sprintf("only %d of %d peers were ever reached%s", asked, all, atPort)}
	}
	result := Result{Detail: fmt.Sprintf("reached %d of %d peers", reached, asked)}
	switch {
	case isMost(reached, asked):
		result.Outcome = Well
	case isFew(reached, asked):
		result.Outcome = Failed
	}
	if asked < all {
		result.Detail += fmt.Sprintf("; %d of %d were never reached%s", all-asked, all, atPort)
	}
	return result
}

// NearlyAllRefuse reports whether nearly all peers refuse: then a packet filter on the way may
// refuse in their place.
func NearlyAllRefuse(refused, asked int) bool {
	return refused >= fewestPeers && isMost(refused, asked)
}

// reach is what a round shows of the peers that count.
type reach struct {
	// Numbers of peers: all, those whose hosts answered, and of these the others that did at their
	// second port only. Of those reached at the agent's port, silent did not answer, and of the
	// silent ones, hung let the request time out.
	all, reached, other, silent, hung int
	// halves: the fleet is split, and this host knows by bad luck mostly peers of the other side.
	halves bool
}

func reachOf(peers []PeerResult) (n reach) {
	knowing, partly := 0, 0 // of those that say what they reach
	for i := range peers {
		p := &peers[i]
		switch {
		case p.isThere() && !p.Reached:
			n.other++
		case p.Reached && p.Answer == nil && p.Hangs:
			n.hung++
			n.silent++
		case p.Reached && p.Answer == nil:
			n.silent++
		case p.Reached && p.Answer.Reach >= 0:
			knowing++
			if !isFew(p.Answer.Reach, 100) && !isMost(p.Answer.Reach, 100) {
				partly++
			}
		}
	}
	n.all, n.reached = len(peers), count(peers, (*PeerResult).isThere)
	n.halves = knowing > 0 && 2*partly >= knowing
	return n
}

// isFew and isMost compare the peers whose hosts answered with all, if these are enough.
func (n *reach) isFew() bool  { return n.all >= fewestPeers && isFew(n.reached, n.all) }
func (n *reach) isMost() bool { return n.all < fewestPeers || isMost(n.reached, n.all) }

// addReach takes in whom a round reached.
func (e *Evaluator) addReach(r *Round) {
	n := reachOf(r.Peers)
	enough := n.all >= fewestPeers
	e.low.add(n.isFew(), r.At)
	e.part.add(!n.isMost(), r.At)
	e.mute.add(enough && isMost(n.silent, n.all), r.At)
	e.hangs.add(enough && isMost(n.hung, n.all), r.At)
	e.blocked.add(n.other > 0 && 100*n.other >= lowPercent*n.all, r.At)
	e.suspicion.next(r, e.low.any(), e.part.count() <= suddenRounds, e.api.often())
	never, all := r.NeverReached, r.NeverReached+len(r.Peers)
	e.never.add(never > 0 && (never == all || never >= fewestPeers && 100*never >= lowPercent*all), r.At)
}

// suddenRounds is in how many rounds a host that is cut off loses its peers.
const suddenRounds = 2

// percent is the share of reached peers that peers read, or -1 if there are too few.
func (n *reach) percent() int {
	if n.all < fewestPeers {
		return -1
	}
	return 100 * n.reached / n.all
}

// String says how many were reached, for people.
func (n *reach) String() string { return fmt.Sprintf("reached %d of %d peers", n.reached, n.all) }

// hanging says how many make wait, for people.
func (n *reach) hanging() string {
	return fmt.Sprintf("%s, and %d of them do not answer in time", n, n.hung)
}
