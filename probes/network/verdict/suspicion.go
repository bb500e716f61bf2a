package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// How a suspicion is checked.
const (
	// askSome of the peers that are not reached are asked about.
	askSome = 5
	// askAgain is when others are asked about after an answer, which may take askPatience.
	askAgain, askPatience = time.Minute, 30 * time.Second
	// suspicionJitter is added to a wait, so that a fleet does not ask at once.
	suspicionJitter, shortJitter = 10 * time.Second, time.Second
	// leaseAgain is when Leases are read again after the short wait.
	leaseAgain = 2 * time.Second
	// leaseTells is how long after a note a Lease that was not renewed tells that the
	// Node is gone: a kubelet renews it every 10 s, or 4 % more.
	leaseTells = 12 * time.Second
	// manyWitnesses peers and more soon show that a fault is one of all.
	manyWitnesses = 6
)

// leaseLead is how long before a question Leases are noted: some rounds, so that one is early enough.
func leaseLead(period time.Duration) time.Duration { return leaseTells + max(period, 5*time.Second) }

// suspicionWait is how long a host suspects itself before it asks about others, which by then must
// have suspected themselves too. A fault may take half a minute to reach the last host, which then
// needs some rounds to see it and a moment to say so. And hosts that lost power are Ready for up to
// 55 s (--node-monitor-grace-period, --node-monitor-period); the first suspicion comes 10 s after
// the fault.
func suspicionWait(period time.Duration) time.Duration { return 45*time.Second + 2*period }

// shortWait is the wait of a host that reaches neither port of its peers, after it reached both:
// then the cause is not that someone blocks taintlet's port, host by host. A fault of the whole
// fleet that reaches one host after another within a few rounds soon reaches one of many peers, and
// each host suspects itself at most a period and some moments after the fault. With few peers it
// takes longer. A slower fault removes the peers one after another, and then the long wait applies.
// Hosts that lost power do not renew their Leases.
func shortWait(period time.Duration, peers int) time.Duration {
	wait := 5*time.Second + max(period, 5*time.Second)
	if peers < manyWitnesses {
		wait += 8 * time.Second
	}
	return wait
}

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
	// due is when to ask, again. The long wait ends at long.
	due, long time.Time
	// silent: the API server did not answer in the round before.
	silent bool
	// noted has the Nodes whose Leases are noted after the round at notedAt, for the next question: a host
	// without power may be Ready for minutes. leases has when those that could be read were renewed.
	noted   []string
	notedAt time.Time
	leases  map[string]time.Time
	// excused are the Nodes that did not count when they were queried last. Other Nodes are queried first.
	excused map[string]bool
	// ask has the Nodes whose Standings are awaited, since askedAt.
	ask     []string
	askedAt time.Time
	found   census // by the last answer
}

// isShort reports whether the short wait ends next.
func (s *suspicion) isShort() bool { return s.due.Before(s.long) }

// jittered adds some jitter.
func (s *suspicion) jittered(d, most time.Duration) time.Duration {
	return d + time.Duration(s.random.Int64N(int64(most)))
}

// begin makes the host suspect itself. isSudden: it lost its peers within two rounds.
func (s *suspicion) begin(r *Round, wasSilent, isSudden bool) {
	s.end()
	s.stage, s.excused, s.long = suspect, map[string]bool{}, r.At.Add(s.jittered(suspicionWait(s.period), suspicionJitter))
	s.due = s.long
	if isSudden && !s.silent && !wasSilent && portsTell(r.Peers) { // after a silence others may be about to come back
		s.due = r.At.Add(shortWait(s.period, len(r.Peers)))
		s.prepare(r)
	}
}

func (s *suspicion) end() { *s = suspicion{period: s.period, random: s.random, silent: s.silent} }

// prepare chooses whom the next question is about, and has their Leases noted.
func (s *suspicion) prepare(r *Round) {
	s.noted, s.notedAt, s.leases = s.draw(r.Peers, askSome), r.At, map[string]time.Time{}
}

// portsTell reports whether enough of the peers that are not reached had a second
// port that answered. It does not now, so it is not only our port.
func portsTell(peers []PeerResult) bool {
	gone := count(peers, func(p *PeerResult) bool { return !p.isThere() })
	proving := count(peers, func(p *PeerResult) bool { return !p.isThere() && p.OtherKnown })
	return proving >= fewestPeers && 2*proving >= gone
}

// next adds a round. low: few peers have been reached for some rounds. canPublish: the API server
// answers; while it does not, hosts cannot publish their suspicions, and every wait restarts.
func (s *suspicion) next(r *Round, low, isSudden, canPublish bool) {
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
	} else if s.ask == nil && s.noted != nil && !r.At.Before(s.due) && (s.isShort() || r.At.Sub(s.notedAt) >= leaseTells) {
		s.ask, s.askedAt = s.noted, r.At
		if s.isShort() { // of a fault that reaches all within half a minute, few may have it yet
			s.ask = s.draw(r.Peers, len(r.Peers))
		}
	}
}

// draw chooses some of the peers that are not reached: those first that are not known not to count.
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

// answered adds the renewals of the Leases that are noted, or the published states of the queried Nodes.
// After the short wait, other hosts may not have had the time to suspect themselves. So none of them may
// suspect itself, and more than half of the Nodes whose Leases were noted must be known to be alive.
// Otherwise the host continues to wait: for Leases that may still be renewed, or for the end of the long wait.
func (s *suspicion) answered(r *Round) {
	if s.notedAt.Equal(r.At) {
		for _, standing := range r.Standings {
			s.leases[standing.Node] = standing.Renewed
		}
	}
	if s.ask == nil {
		return
	}
	asked, noted := s.ask, s.noted
	c := s.countStandings(r)
	s.ask, s.noted = nil, nil
	// The same share of the Nodes that were not queried is assumed gone or not to count.
	n := reachOf(r.Peers)
	live := float64(n.reached) + float64(n.all-n.reached)*float64(c.count)/float64(len(asked))
	areWell := c.count >= fewestPeers && 2*c.well > c.count && float64(100*n.reached) <= lowPercent*live
	if s.isShort() && (!areWell || !c.areAllWell(len(noted))) {
		s.due = s.long
		if c.well == c.count && r.At.Sub(s.notedAt) < leaseTells {
			s.noted, s.due = noted, r.At.Add(leaseAgain)
		}
		return
	}
	s.due = r.At.Add(s.jittered(askAgain, suspicionJitter))
	others := count(r.Peers, func(p *PeerResult) bool { return !p.isThere() && !s.excused[p.Node] })
	if c.count < fewestPeers && others > 0 {
		s.due = r.At.Add(s.jittered(leaseLead(s.period), shortJitter))
	}
	s.found, s.stage = c, many
	if areWell {
		s.stage = accused
	}
}

// census is what the Nodes that were asked about say of themselves.
type census struct {
	// count of them count. Of these, well do not suspect themselves, and there renew their Leases.
	count, well, there int
	excused            []string // for people
}

// renews reports what a Node's Lease shows, if it was noted: it was renewed since, or not and that was
// noted long enough ago. It is compared with itself, so that no clocks of different hosts are.
func (s *suspicion) renews(standing *Standing, now time.Time) (renews, isKnown bool) {
	before := s.leases[standing.Node]
	if before.IsZero() || standing.Renewed.IsZero() {
		return false, false
	}
	renews = !standing.Renewed.Equal(before)
	return renews, renews || now.Sub(s.notedAt) >= leaseTells
}

// excuse says why a Node does not count, and whether its Lease is known. If a cordoned Node renews its
// Lease, its host is there: it may be cordoned for days. If any Lease is known, a Node whose Lease was
// noted and is not known does not count: it may be without power, and still Ready for minutes.
func (s *suspicion) excuse(standing *Standing, now time.Time, anyKnown bool) (excuse string, isKnown bool) {
	renews, isKnown := s.renews(standing, now)
	switch excuse = standing.Excuse; {
	case isKnown && !renews && excuse != Maintained:
		excuse = "does not renew its Lease"
	case renews && excuse == Cordoned:
		excuse = ""
	case excuse == "" && !standing.Suspects && !isKnown && anyKnown && slices.Contains(s.noted, standing.Node):
		excuse = "its Lease is not known"
	}
	return excuse, isKnown
}

// countStandings counts the queried Nodes that answered.
func (s *suspicion) countStandings(r *Round) (c census) {
	anyKnown := slices.ContainsFunc(r.Standings, func(one Standing) bool { _, isKnown := s.renews(&one, r.At); return isKnown })
	for _, standing := range r.Standings {
		node := standing.Node
		if !slices.Contains(s.ask, node) {
			continue
		}
		excuse, isKnown := s.excuse(&standing, r.At, anyKnown)
		if excuse != "" {
			s.excused[node] = true
			c.excused = append(c.excused, node+" "+excuse)
			continue
		}
		c.count, s.excused[node] = c.count+1, false
		if !standing.Suspects {
			c.well++
		}
		if isKnown {
			c.there++
		}
	}
	return c
}

// areAllWell reports whether none that counts suspects itself, and most of the Leases noted are renewed.
func (c *census) areAllWell(noted int) bool {
	return c.well == c.count && c.there >= fewestPeers && 2*c.there > noted
}

// String says what was found, for people. It names the first that do not count.
func (c census) String() string {
	const most = 3
	text := fmt.Sprintf("%d of %d other hosts are healthy", c.well, c.count)
	if len(c.excused) > 0 {
		text += "; not counted: " + strings.Join(c.excused[:min(most, len(c.excused))], ", ")
	}
	if more := len(c.excused) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// conclusion says what the counts mean if they do not taint this host.
func (c census) conclusion() string {
	if c.count < fewestPeers {
		return fmt.Sprintf("fewer than %d count, so no taint follows", fewestPeers)
	}
	return "a fault of many hosts sets no taint"
}
