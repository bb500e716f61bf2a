package verdict

import (
	"fmt"
	"net/netip"
	"time"
)

// relative compares a class that fails here with what peers say of it. A node
// whose pods reach no DNS should get no pods while others do.
type relative struct {
	compared
	class Class
	// known: the newest round knew it. never: it fails and was never well.
	known, never bool
	// isError: the newest round found nameservers that answer with errors only.
	isError bool
	// pods has what the newest round found of each DNS pod.
	pods map[netip.AddrPort]bool
	// heard is what peers report of the class, same what they report of the targets that
	// this host asked; asked is how many peers there are.
	heard, same opinions
	asked       int
	detail      string
}

// opinions counts what peers report: well of know report it well.
type opinions struct{ know, well int }

// add takes in a peer's report. One that is under maintenance is no witness against this host.
func (r *opinions) add(well, known, maintenance bool) {
	if !known || well && maintenance {
		return
	}
	r.know++
	if well {
		r.well++
	}
}

// add takes in a round.
func (c *relative) add(r *Round) {
	result := r.Results[c.class]
	c.known, c.detail = result.Outcome != NotKnown, result.Detail
	c.never = !c.known && result.Never
	c.pods, c.isError = result.Pods, result.IsError
	c.heard, c.same, c.asked = opinions{}, opinions{}, len(r.Peers)
	for _, p := range r.Peers {
		if !p.Reached || p.Answer == nil {
			continue
		}
		well, known := c.reportOf(p.Answer)
		c.heard.add(well, known, p.Answer.Maintenance)
		well, known = c.reportOfSame(p.Answer)
		c.same.add(well, known, p.Answer.Maintenance)
	}
	c.take(result.Outcome == Failed, c.comparable(r) && c.isWellElsewhere(), c.isWellAtAll() && reachesMost(r), r.At)
}

// witnesses is how many peers have to know a class; of fewer than twice as many peers,
// half have to. While most peers give no answer, as when somebody floods them, one that
// lies could otherwise accuse this host of a fault of all.
const witnesses = 3

// isWellElsewhere reports whether enough peers know the class, and two thirds of these
// report it well.
func (c *relative) isWellElsewhere() bool { return c.heard.areWitnesses(c.asked) }

// isWellAtAll reports whether enough peers know the same targets, and all report them
// well. Of a fault that reaches one host after another, some peer has it soon.
func (c *relative) isWellAtAll() bool { return c.same.areEnough(c.asked) && c.same.well == c.same.know }

// areWitnesses reports whether enough of the peers asked know something, and two thirds
// of these report it well.
func (r opinions) areWitnesses(asked int) bool { return r.areEnough(asked) && 3*r.well >= 2*r.know }

func (r opinions) areEnough(asked int) bool {
	return r.know > 0 && (r.know >= witnesses || 2*r.know >= asked)
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

// reportOfSame returns what a peer reports of the targets that fail here. A DNS pod on a host
// without power stays listed for most of a minute, and fails at the peers as well.
func (c *relative) reportOfSame(a *Answer) (well, known bool) {
	if c.class != Pods {
		return c.reportOf(a)
	}
	for pod := range c.pods {
		there, isKnown := a.Pods[pod]
		well, known = well || there, known || isKnown
	}
	return well, known
}

// comparable reports whether peers ask what this host asks. No host asks the DNS pods of
// its own Node. Where a part of the fleet is gone with most of the DNS pods, the host of
// the last pod reaches none, and its peers reach that one.
func (c *relative) comparable(r *Round) bool {
	return c.class != Pods || reachesMost(r)
}

// reachesMost reports whether this host reaches most of its peers. Where a large part of the
// fleet is gone, a healthy host may find DNS unreachable for some rounds by bad luck.
func reachesMost(r *Round) bool {
	reached, all := reachOf(r.Peers)
	return 100*reached >= wellPercent*all
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
		return fmt.Sprintf("%s; %d of %d peers that ask this pod reach it", text, c.heard.well, c.heard.know)
	}
	return fmt.Sprintf("%s; %d of %d peers that know it report it as healthy", text, c.heard.well, c.heard.know)
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
