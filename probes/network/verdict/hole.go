package verdict

import (
	"fmt"
	"time"
)

// hole is what a host knows of the largest packets: where these get lost and small ones
// do not, connections are made and then hang.
type hole struct {
	// dwell is for how long they must get lost here and not between the peers.
	dwell time.Duration
	// lost of tried peers: full packets get lost on the way there or back.
	lost, tried int
	// here: they do to many. isNew: one was lost in the newest round.
	here  streak
	isNew bool
	// now is when the newest round began.
	now time.Time
	// passed counts the exchanges that passed, for the peers to see it change.
	passed int
	// before has what peers counted when this host began to lose full packets. Those that
	// count on since then exchange full packets among themselves.
	before map[string]int
	// heard is what peers report of theirs, of those asked.
	heard opinions
	asked int
}

// holeDwell is how long full packets must get lost here. By then the peers have heard of it
// and tried, and so have those that they told. With it, no healthy host is accused in the
// simulation of a fault that reaches all within half a minute, and without it a few are.
func holeDwell(period time.Duration) time.Duration { return 5*time.Second + 2*period }

// lastPassed is the number after which the count begins anew.
const lastPassed = 9999

// lostHere is what peers are told instead of the count.
const lostHere = -1

// add takes in a round.
func (h *hole) add(r *Round) {
	h.lost, h.tried, h.asked = 0, 0, len(r.Peers)
	lostNow := 0
	for i := range r.Peers {
		p := &r.Peers[i]
		if p.Full != NotTried && p.Reached && p.Answer != nil {
			h.tried++
			if p.Full == Lost {
				h.lost++
			}
		}
		if p.FullNow && p.Full == Lost {
			lostNow++
		}
		if p.FullNow && p.Full == Passed {
			h.passed = h.passed%lastPassed + 1
		}
	}
	h.isNew, h.now = lostNow > 0, r.At
	h.here.add(isHole(h.lost, h.tried) && lostNow >= fewestPeers, r.At)
	h.compare(r)
}

// compare counts the peers that exchange full packets among themselves since this host
// does not.
func (h *hole) compare(r *Round) {
	h.heard = opinions{}
	if !h.here.any() {
		h.before = nil
		return
	}
	if h.before == nil {
		h.before = map[string]int{}
	}
	for i := range r.Peers {
		p := &r.Peers[i]
		if !p.Reached || p.Carried || p.Answer == nil || p.Answer.Full == nil {
			continue
		}
		count := *p.Answer.Full
		before, isKnown := h.before[p.Node]
		switch {
		case count < 0:
			h.heard.add(false, true, false)
		case !isKnown:
			h.before[p.Node] = count
		case count != before:
			h.heard.add(true, true, p.Answer.Maintenance)
		}
	}
}

// accuses reports whether full packets get lost here and not between the peers.
func (h *hole) accuses() bool {
	return h.shows() && h.here.holds(h.dwell, h.now) && h.heard.areWitnesses(h.asked)
}

// due is when a round shows more; zero: none does soon. All peers are asked then.
func (h *hole) due(r *Round) time.Time {
	if h.isNew {
		return r.At // as soon as may be
	}
	return time.Time{}
}

// unproven reports whether full packets get lost here, and that says nothing of this host yet.
func (h *hole) unproven() bool { return h.shows() && !h.accuses() }

// shows reports whether full packets get lost, and have in 3 of the last 5 rounds.
func (h *hole) shows() bool { return h.here.now() && !h.here.since.IsZero() }

// isUntried reports whether no full packet passed here since the start, although peers know
// of them. In a fleet of older agents none can.
func (h *hole) isUntried(r *Round) bool {
	know := 0
	for i := range r.Peers {
		if a := r.Peers[i].Answer; a != nil && a.Full != nil && *a.Full > 0 {
			know++
		}
	}
	return h.passed == 0 && know >= fewestPeers
}

// published is what peers are told; nil: not known.
func (h *hole) published() *int {
	switch {
	case h.here.any(), h.lost > 1 && 100*h.lost > lowPercent*h.tried:
		return new(lostHere)
	case h.passed == 0:
		return nil
	}
	return new(h.passed)
}

// severity is 75 where this host is accused.
func (h *hole) severity() int {
	switch {
	case h.accuses():
		return 75
	case h.here.any():
		return 25
	}
	return 0
}

// String says what was found, for people.
func (h *hole) String() string {
	return fmt.Sprintf("full packets to or from %d of %d peers get lost, and small ones do not; %d of %d peers that know it report that theirs arrive", h.lost, h.tried, h.heard.well, h.heard.know)
}
