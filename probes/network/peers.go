package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// peersCheck asks the agents on other Nodes. Each connection is a new one with a
// new source port, so that it may take another of several ways than the others.
type peersCheck struct {
	peers func() []Peer
	seen  reached[peerTarget]
	// found is what this round found of the peers that count.
	found []PeerResult
}

// peerTarget is what has to stay the same for a peer to be the one that was
// reached.
type peerTarget struct {
	node    string
	address netip.AddrPort
}

func (p Peer) target() peerTarget { return peerTarget{p.Node, p.Address} }

func (*peersCheck) class() Class { return Peers }

func (p *peersCheck) check(ctx context.Context, patience time.Duration) Result {
	p.found = nil
	chosen := p.peers()
	targets := make([]peerTarget, len(chosen))
	results := make([]PeerResult, len(chosen))
	var group sync.WaitGroup
	for i, peer := range chosen {
		targets[i] = peer.target()
		group.Go(func() { results[i] = askPeer(ctx, peer, patience) })
	}
	group.Wait()
	p.seen.keep(targets)
	for i, result := range results {
		if result.Reached {
			p.seen[targets[i]] = true
		}
		if p.seen[targets[i]] {
			p.found = append(p.found, result)
		}
	}
	return p.judge(len(chosen))
}

// judge sums up what the verdict reads of each peer by itself. A share of 80 %
// is well, one of 20 % has failed.
func (p *peersCheck) judge(chosen int) Result {
	asked, reached := len(p.found), 0
	for _, peer := range p.found {
		if peer.Reached {
			reached++
		}
	}
	if asked == 0 {
		return Result{Outcome: NotKnown, Detail: fmt.Sprintf("none of %d peers was ever reached", chosen)}
	}
	outcome := NotKnown
	switch {
	case 5*reached >= 4*asked:
		outcome = Well
	case 5*reached <= asked:
		outcome = Failed
	}
	return Result{Outcome: outcome, Detail: fmt.Sprintf("reached %d of %d peers", reached, asked)}
}

// askPeer asks one peer, and where that fails its second port.
func askPeer(ctx context.Context, peer Peer, patience time.Duration) PeerResult {
	result := PeerResult{Node: peer.Node}
	first, cancel := context.WithTimeout(ctx, patience)
	r, err := get(first, peer.Address, "/peer", "")
	cancel()
	result.Reached, result.Retransmits = r.connected || isThere(err), r.retransmits
	if !result.Reached {
		if peer.Other != 0 {
			other := netip.AddrPortFrom(peer.Address.Addr(), peer.Other)
			result.ReachedOther = isThere(knock(ctx, other, patience))
		}
		return result
	}
	if err == nil && r.status == http.StatusOK {
		result.Answer, _ = parseAnswer(r.body)
	}
	return result
}

// parseAnswer reads what a peer said. What does not have this version, or cannot
// be, is no answer.
func parseAnswer(body []byte) (*Answer, error) {
	var a Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Version != AnswerVersion {
		return nil, fmt.Errorf("version %d", a.Version)
	}
	if a.Lossy < -1 || a.Lossy > 100 {
		return nil, errors.New("lossy is no percentage")
	}
	return &a, nil
}

// said returns what the peers said, by Node.
func (p *peersCheck) said() map[string]Answer {
	answers := make(map[string]Answer, len(p.found))
	for _, peer := range p.found {
		if peer.Answer != nil {
			answers[peer.Node] = *peer.Answer
		}
	}
	return answers
}
