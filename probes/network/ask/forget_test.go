package ask

import (
	"testing"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// After a gap, a peer that does not answer is one that was never reached.
func TestPeersForget(t *testing.T) {
	t.Parallel()
	peers, peer := NewPeers(testPeriod), verdict.Peer{Node: "a"}
	if first, second := peers.took(peer, true), peers.took(peer, false); first.Outcome != verdict.Well || second.Outcome != verdict.Failed {
		t.Errorf("%+v, then %+v", first, second)
	}
	peers.Forget()
	if got := peers.took(peer, false); got.Outcome != verdict.NotKnown || !got.Never {
		t.Errorf("after a gap: %+v", got)
	}
}

// took is what the class finds of one peer.
func (p *Peers) took(peer verdict.Peer, reached bool) verdict.Result {
	p.turns.Choose([]verdict.Peer{peer}, true)
	p.turns.Take(peer, verdict.PeerResult{Node: peer.Node, Reached: reached})
	p.Found = p.turns.Results([]verdict.Peer{peer})
	return verdict.PeersResult(p.Found, []verdict.Peer{peer})
}
