package verdict

import (
	"fmt"
	"net/netip"
	"time"
)

// relative compares a class that fails here with what peers say of it. A node
// whose pods reach no DNS should get no pods while others do.
type relative struct {
	class Class
	// dwell is how long it must fail here and be well there.
	dwell time.Duration
	// here: it fails here. apart: it fails here and is well there.
	here, apart streak
	// known: the newest round knew it. never: it fails and was never well.
	known, never bool
	// isError: the newest round found nameservers that answer with errors only.
	isError bool
	// pods has what the newest round found of each DNS pod.
	pods map[netip.AddrPort]bool
	// well of know peers report it well; asked is how many peers there are.
	well, know, asked int
	detail            string
}

// add takes in a round.
func (c *relative) add(r *Round) {
	result := r.Results[c.class]
	c.known, c.detail = result.Outcome != NotKnown, result.Detail
	c.never = !c.known && result.Never
	c.pods, c.isError = result.Pods, result.IsError
	c.well, c.know, c.asked = 0, 0, len(r.Peers)
	for _, p := range r.Peers {
		if !p.Reached || p.Answer == nil {
			continue
		}
		if well, ok := c.reportOf(p.Answer); ok && (!well || !p.Answer.Maintenance) {
			c.know++
			if well {
				c.well++
			}
		}
	}
	failed := result.Outcome == Failed
	c.here.add(failed, r.At)
	c.apart.add(failed && c.comparable(r) && c.isWellElsewhere(), r.At)
}

// witnesses is how many peers have to know a class; of fewer than twice as many peers,
// half have to. While most peers give no answer, as when somebody floods them, one that
// lies could otherwise accuse this host of a fault of all.
const witnesses = 3

// isWellElsewhere reports whether enough peers know the class, and two thirds of these
// report it well.
func (c *relative) isWellElsewhere() bool { return areWitnesses(c.well, c.know, c.asked) }

// areWitnesses reports whether enough of the peers asked know something, and two thirds
// of these report it well.
func areWitnesses(well, know, asked int) bool {
	return know > 0 && (know >= witnesses || 2*know >= asked) && 3*well >= 2*know
}

// reportOf returns what a peer reports of the class. The host of one of two DNS pods
// asks the other one alone, and its peers ask both: then what they say of that one
// counts. It is the pod that is gone where they do not reach it either.
//
// Of nameservers that answer with errors, only peers tell that do not take an error for an
// answer.
func (c *relative) reportOf(a *Answer) (well, known bool) {
	if c.isError {
		return a.Resolves != nil && *a.Resolves, a.Resolves != nil
	}
	if len(c.pods) != 1 {
		well, known = a.Classes[c.class]
		return well, known
	}
	for only := range c.pods {
		well, known = a.Pods[only]
	}
	return well, known
}

// comparable reports whether peers ask what this host asks. No host asks the DNS pods of
// its own Node. Where a part of the fleet is gone with most of the DNS pods, the host of
// the last pod reaches none, and its peers reach that one.
func (c *relative) comparable(r *Round) bool {
	reached, all := reachOf(r.Peers)
	return c.class != Pods || 100*reached >= wellPercent*all
}

// accuses reports whether the class fails here alone, and has for its dwell.
func (c *relative) accuses(now time.Time) bool { return c.apart.now() && c.apart.holds(c.dwell, now) }

// unproven reports whether it fails here, and that says nothing of this host.
func (c *relative) unproven(now time.Time) bool {
	return c.here.holds(0, now) && c.here.now() && !c.apart.now()
}

// String says what was found, for people.
func (c *relative) String() string {
	text, detail := fmt.Sprintf("%s fails here", c.class), c.detail
	if !c.here.now() && !c.never {
		text, detail = fmt.Sprintf("%s failed here a moment ago", c.class), "now: "+c.detail
	}
	if c.detail != "" {
		text += " (" + detail + ")"
	}
	if len(c.pods) == 1 {
		return fmt.Sprintf("%s; %d of %d peers that ask this pod reach it", text, c.well, c.know)
	}
	return fmt.Sprintf("%s; %d of %d peers that know it report it well", text, c.well, c.know)
}

// severity is 50 when the class has failed here alone for its dwell.
func (c *relative) severity(now time.Time) int {
	switch {
	case c.accuses(now):
		return 75
	case !c.here.any():
		return 0
	case c.apart.since.IsZero():
		return 25
	}
	return min(49, 25+int(25*now.Sub(c.apart.since)/c.dwell))
}

// resolves is what peers are told of the nameservers; nil: not known.
func (c *relative) resolves() *bool {
	if c.class != DNS || !c.known && !c.isError {
		return nil
	}
	return new(c.known && !c.here.any())
}
