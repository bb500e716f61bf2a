package verdict

import (
	"fmt"
	"time"
)

// PeersResult is what the class finds that asked the chosen peers. found are those of them that count,
// and never is how many were asked some times and never reached.
func PeersResult(found []PeerResult, chosen []Peer, never int) Result {
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
	if never > 0 {
		result.Detail += fmt.Sprintf("; %d of %d were never reached%s", never, all, atPort)
	}
	return result
}

// NearlyAllRefuse reports whether so many peers refuse that a packet filter on the way may refuse
// in their name.
func NearlyAllRefuse(refused, asked int) bool {
	return refused >= fewestPeers && isMost(refused, asked)
}

// reach is what a host knows of its peers.
type reach struct {
	suspicion suspicion

	// Numbers of peers: all, those reached at the agent's port, and others reached at their second
	// port only. Of the reached peers, silent did not answer, and of the silent ones, hung let the
	// request time out.
	all, reached, other, silent, hung int
	// low: at most a fifth are reached. part: less than four fifths. blocked: a fifth or more
	// answer at their second port only. mute: four fifths or more are silent. hangs: hung, as
	// where packets get lost that are not tiny.
	low, part, blocked, mute, hangs streak
	// halves: the fleet is split, and this host knows by bad luck mostly peers of the other side.
	halves bool
}

// suddenRounds is in how many rounds a host that is cut off loses its peers.
const suddenRounds = 2

// add takes in a round.
func (p *reach) add(r *Round, apiAnswers bool) {
	p.reached, p.all = reachOf(r.Peers)
	p.other = count(r.Peers, func(p *PeerResult) bool { return !p.Reached && p.ReachedOther })
	p.silent = count(r.Peers, func(p *PeerResult) bool { return p.Reached && p.Answer == nil })
	p.hung = count(r.Peers, func(p *PeerResult) bool { return p.Reached && p.Answer == nil && p.Hangs })
	p.halves = areHalves(r.Peers)
	enough := p.all >= fewestPeers
	p.low.add(enough && isFew(p.reached, p.all), r.At)
	p.part.add(enough && !isMost(p.reached, p.all), r.At)
	p.mute.add(enough && isMost(p.silent, p.all), r.At)
	p.hangs.add(enough && isMost(p.hung, p.all), r.At)
	p.blocked.add(p.other > 0 && 100*p.other >= lowPercent*p.all, r.At)
	p.suspicion.next(r, p.low.any(), p.part.count() <= suddenRounds, apiAnswers)
}

// areHalves reports whether half of the peers that are reached reach a part of theirs.
func areHalves(peers []PeerResult) bool {
	know := count(peers, func(p *PeerResult) bool { return p.Reached && p.Answer != nil && p.Answer.Reach >= 0 })
	partly := count(peers, func(p *PeerResult) bool {
		return p.Reached && p.Answer != nil && p.Answer.Reach > lowPercent && p.Answer.Reach < wellPercent
	})
	return know > 0 && 2*partly >= know
}

// accuses reports whether this host is cut off while other hosts are healthy.
func (p *reach) accuses() bool {
	return p.suspicion.stage == accused && p.low.now() && p.low.often() && !p.halves
}

// isOneOfMany reports whether others are no better than this host.
func (p *reach) isOneOfMany() bool {
	return p.suspicion.stage == many || p.suspicion.stage == accused && p.halves
}

// due is when a round decides whether this host is cut off; zero: none does soon.
func (p *reach) due(r *Round) time.Time {
	switch s := &p.suspicion; {
	case !p.low.now():
		return time.Time{}
	case s.isShort() && s.ask == nil:
		return s.due
	case s.isShort(), s.stage == calm:
		return r.At // as soon as may be
	}
	return time.Time{}
}

// percent is the share of reached peers that peers read, or -1 if there are too few.
func (p *reach) percent() int {
	if p.all < fewestPeers {
		return -1
	}
	return 100 * p.reached / p.all
}

// severity is 50 where a fifth is reached, and 100 where none is.
func (p *reach) severity() int {
	if p.all < fewestPeers {
		return 0
	}
	missing := 100 - p.percent()
	if missing <= 100-lowPercent {
		return 50 * missing / (100 - lowPercent)
	}
	return 50 + 50*(missing-(100-lowPercent))/lowPercent
}

// String says how many were reached, for people.
func (p *reach) String() string { return fmt.Sprintf("reached %d of %d peers", p.reached, p.all) }

// hanging says how many make wait, for people.
func (p *reach) hanging() string {
	return fmt.Sprintf("%s, and %d of them do not answer in time", p, p.hung)
}
