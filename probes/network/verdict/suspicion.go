package verdict

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
	// suspicionJitter is added to a wait, so that a fleet does not ask at once.
	suspicionJitter = 10 * time.Second
	shortJitter     = time.Second
	// leaseAgain is when Leases are read again after the short wait.
	leaseAgain = 2 * time.Second
	// leaseTells is how long after a note a Lease that was not renewed tells that the
	// Node is gone: a kubelet renews it every 10 s, or 4 % more.
	leaseTells = 12 * time.Second
)

// leaseLead is how long before a question the Leases are noted that it is about: some
// rounds, so that one of them is early enough.
func leaseLead(period time.Duration) time.Duration { return leaseTells + max(period, 5*time.Second) }

// suspicionWait is how long a host suspects itself before it asks about others.
// By then all others must have had the time to suspect themselves too. A fault
// may take half a minute to reach the last host, which then needs some rounds to
// see it and a moment to say so. And hosts that lost power are Ready for 50 s,
// plus the 5 s in which the control plane notices (--node-monitor-grace-period,
// --node-monitor-period); the first suspicion comes 10 s after the fault.
func suspicionWait(period time.Duration) time.Duration { return 45*time.Second + 2*period }

// shortWait is the wait of a host that reaches no port of its peers, where it
// reached two before. Nobody blocks taintlet's port then, host by host. What is
// left is a fault of all: one that reaches one host after another within some rounds has
// reached one of many peers soon, and each host suspects itself at most a period and some
// moments after the fault. Of few peers it takes longer. A slower one takes away the peers
// one after another, and then the wait is long. And hosts that lost power: a kubelet renews
// its Lease every 10 s, so that those count alone which were renewed meanwhile.
func shortWait(period time.Duration, peers int) time.Duration {
	wait := 5*time.Second + max(period, 5*time.Second)
	if peers < manyWitnesses {
		wait += 8 * time.Second
	}
	return wait
}

// manyWitnesses peers and more soon show that a fault is one of all.
const manyWitnesses = 6

// stage is how far a suspicion has come.
type stage int8

const (
	calm    stage = iota
	suspect       // nobody was asked about yet, or what they said was not clear
	many          // the others are not better
	accused       // the others are well
)

// suspicion is what a host that does not reach its peers thinks of itself.
type suspicion struct {
	period time.Duration
	random *rand.Rand

	stage stage
	// due is when to ask, again. isShort: that is after the short wait; the long
	// one ends at long.
	due, long time.Time
	isShort   bool
	// silent: the API server did not answer in the round before.
	silent bool
	// note has the Nodes whose Leases are to be noted after this round, noted those
	// of the next question, since notedAt. The control plane may take minutes to see
	// that a host has no power.
	note, noted []string
	notedAt     time.Time
	// excused were those asked about that do not count. Others are asked about first.
	excused map[string]bool
	// ask has the Nodes whose Standings are awaited, since askedAt.
	ask     []string
	askedAt time.Time
	found   string // what the last answer showed, for people
	count   int    // of those asked about
}

// jittered adds some jitter.
func (s *suspicion) jittered(d, most time.Duration) time.Duration {
	return d + time.Duration(s.random.Int64N(int64(most)))
}

// begin makes the host suspect itself. It asks nothing before the others had their
// time. isSudden: it lost its peers within two rounds.
func (s *suspicion) begin(r *Round, wasSilent, isSudden bool) {
	s.end()
	s.stage, s.long = suspect, r.At.Add(s.jittered(suspicionWait(s.period), suspicionJitter))
	s.due = s.long
	if isSudden && !s.silent && !wasSilent && portsTell(r.Peers) { // after a silence others may be about to come back
		s.isShort, s.due = true, r.At.Add(shortWait(s.period, len(r.Peers)))
		s.prepare(r)
	}
}

func (s *suspicion) end() {
	*s = suspicion{period: s.period, random: s.random, silent: s.silent}
}

// prepare chooses whom the next question is about, and has their Leases noted.
func (s *suspicion) prepare(r *Round) {
	s.noted, s.notedAt = s.draw(r.Peers, askSome), r.At
	s.note = s.noted
}

// portsTell reports whether enough of the peers that are not reached had a second
// port that answered. It does not now, so it is not only our port.
func portsTell(peers []PeerResult) bool {
	gone := count(peers, func(p *PeerResult) bool { return !p.isThere() })
	proving := count(peers, func(p *PeerResult) bool { return !p.isThere() && p.OtherKnown })
	return proving >= fewestPeers && 2*proving >= gone
}

// next takes in a round. low: few peers have been reached for some rounds. canPublish:
// the API server answers, so that what hosts say of themselves can be written
// and read. While it does not, every wait begins anew. isSudden: as of begin.
func (s *suspicion) next(r *Round, low, isSudden, canPublish bool) {
	s.note = nil
	wasSilent := s.silent
	s.silent = !canPublish
	switch {
	case !low:
		s.end()
		return
	case s.stage == calm, wasSilent, s.silent:
		s.begin(r, wasSilent, isSudden)
		return
	}
	if s.ask != nil && r.At.Sub(s.askedAt) >= askPatience {
		s.ask, s.noted = nil, nil
	}
	if s.ask == nil && s.noted == nil && !r.At.Before(s.due.Add(-leaseLead(s.period))) {
		s.prepare(r)
	}
	if s.ask == nil && s.noted != nil && !r.At.Before(s.due) && (s.isShort || r.At.Sub(s.notedAt) >= leaseTells) {
		s.ask, s.askedAt = s.whom(r.Peers), r.At
	}
}

// whom chooses whom to ask about. After the short wait these are all that are not
// reached: of a fault that reaches all within half a minute, few may have it yet.
// Later they are those whose Leases were noted.
func (s *suspicion) whom(peers []PeerResult) []string {
	if s.isShort {
		return s.draw(peers, len(peers))
	}
	return s.noted
}

// draw chooses some of the peers that are not reached: those first that are not known
// not to count.
func (s *suspicion) draw(peers []PeerResult, most int) []string {
	var nodes, excused []string
	for _, p := range peers {
		switch {
		case p.isThere():
		case s.excused[p.Node]:
			excused = append(excused, p.Node)
		default:
			nodes = append(nodes, p.Node)
		}
	}
	for _, some := range [][]string{nodes, excused} {
		s.random.Shuffle(len(some), func(i, k int) { some[i], some[k] = some[k], some[i] })
	}
	nodes = append(nodes, excused...)
	return nodes[:min(most, len(nodes))]
}

// answered takes in what the Nodes that were asked about say of themselves. After
// the short wait the others may not have had the time to suspect themselves, so
// that none of them may, and of those whose Leases were noted more than half must be
// known to be there. Otherwise the host waits on.
func (s *suspicion) answered(r *Round) {
	if len(s.ask) == 0 {
		return
	}
	c, excused := countStandings(s.ask, s.noted, r.Standings)
	for node := range s.excused { // those that were not asked about remain excused
		excused[node] = excused[node] || !slices.Contains(s.ask, node)
	}
	s.excused = excused
	asked, noted, wasShort := len(s.ask), s.noted, s.isShort
	s.ask, s.noted, s.isShort = nil, nil, false
	// Of those that were not asked about, as many are gone or excused.
	reached, all := reachOf(r.Peers)
	live := float64(reached) + float64(all-reached)*float64(c.count)/float64(asked)
	isFew := c.count >= fewestPeers && 2*c.well > c.count && float64(100*reached) <= lowPercent*live
	if wasShort && (!isFew || !c.areAllWell(len(noted))) {
		s.waitOn(r, &c, noted)
		return
	}
	s.due = r.At.Add(s.jittered(askAgain, suspicionJitter))
	if c.count < fewestPeers && s.knowsOthers(r.Peers) {
		s.due = r.At.Add(s.jittered(leaseLead(s.period), shortJitter))
	}
	s.found, s.count = c.String(), c.count
	s.stage = many
	if isFew {
		s.stage = accused
	}
}

// waitOn waits for Leases that the others may renew yet, or else for the end of the long wait.
func (s *suspicion) waitOn(r *Round, c *census, noted []string) {
	s.due = s.long
	if c.well == c.count && r.At.Sub(s.notedAt) < leaseTells {
		s.isShort, s.noted, s.due = true, noted, r.At.Add(leaseAgain)
	}
}

// knowsOthers reports whether there are peers to ask about that may count.
func (s *suspicion) knowsOthers(peers []PeerResult) bool {
	return slices.ContainsFunc(peers, func(p PeerResult) bool { return !p.isThere() && !s.excused[p.Node] })
}

// conclusion says what follows where this host is not accused.
func (s *suspicion) conclusion() string {
	if s.count < fewestPeers {
		return fmt.Sprintf("fewer than %d count, so no taint follows", fewestPeers)
	}
	return "a fault of many hosts sets no taint"
}
