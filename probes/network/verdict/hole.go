package verdict

import "fmt"

// hole is where the largest packets get lost and small ones do not: connections are made and then hang.
type hole struct {
	compared
	// lost of tried peers: full packets get lost on the way there or back.
	lost, tried int
	// passed counts the exchanges that passed, for the peers to see it change.
	passed int
	// before has what peers counted when this host began to lose: those that count on exchange full packets.
	before map[string]int
}

// lostHere is published instead of a count.
const lostHere = -1

// isHole reports whether this many lost full packets mean a hole at this host rather than at the
// peers.
func isHole(lost, tried int) bool { return lost >= fewestPeers && 2*lost >= tried }

// add takes in a round.
func (h *hole) add(r *Round) {
	h.tried = count(r.Peers, func(p *PeerResult) bool { return p.Full != NotTried && p.Reached && p.Answer != nil })
	h.lost = count(r.Peers, func(p *PeerResult) bool { return p.Full == Lost && p.Reached && p.Answer != nil })
	lostNow := count(r.Peers, func(p *PeerResult) bool { return p.FullNow && p.Full == Lost })
	h.passed += count(r.Peers, func(p *PeerResult) bool { return p.FullNow && p.Full == Passed })
	here := isHole(h.lost, h.tried) && lostNow >= fewestPeers
	h.hear(r, here || h.here.any())
	h.take(here, h.heard.areWitnesses(len(r.Peers)), false, r.At)
	h.isPressing = lostNow > 0 // all peers are asked then
	// In a network that never lets one pass it may be meant so.
	h.isUntried = h.passed == 0 && fewestPeers <= count(r.Peers, func(p *PeerResult) bool { return p.Answer != nil && p.Answer.Full > 0 })
}

// hear counts the peers that exchange full packets among themselves since this host does not.
func (h *hole) hear(r *Round, fails bool) {
	h.heard = opinions{}
	if !fails {
		clear(h.before)
		return
	}
	for i := range r.Peers {
		p := &r.Peers[i]
		if !p.Reached || p.Carried || p.Answer == nil || p.Answer.Full == 0 {
			continue
		}
		switch before, isKnown := h.before[p.Node]; {
		case p.Answer.Full < 0:
			h.heard.add(false, true, false)
		case !isKnown:
			h.before[p.Node] = p.Answer.Full
		case p.Answer.Full != before:
			h.heard.add(true, true, p.Answer.Maintenance)
		}
	}
}

// published is the value that peers read; 0: not known.
func (h *hole) published() int {
	if h.here.any() || h.lost > 1 && 100*h.lost > lowPercent*h.tried {
		return lostHere
	}
	return h.passed
}

func (h *hole) String() string {
	return fmt.Sprintf("full packets to or from %d of %d peers get lost, and small ones do not; %d of %d peers that know it report that theirs arrive", h.lost, h.tried, h.heard.well, h.heard.know)
}
