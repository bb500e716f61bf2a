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
	// others has what is known of the peers' second ports.
	others map[peerTarget]secondPort
	// found is what this round found of the peers that count.
	found []PeerResult
}

// peerTarget is what has to stay the same for a peer to be the one that was
// reached.
type peerTarget struct {
	node    string
	address netip.AddrPort
}

// secondPort is what is known of a peer's second port.
type secondPort struct {
	// tried: it was asked once while the first one answered. known: it answered
	// then, or later. One that does not may be closed to us.
	tried, known bool
	// now: the first one did not answer in the round before, so both are asked at
	// the same time.
	now bool
}

// otherAfter is how long the first port may take before the second one is asked
// beside it: waiting for one after the other would make a bad round twice as long.
const otherAfter = 300 * time.Millisecond

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
		other := p.others[peer.target()]
		group.Go(func() { results[i] = askPeer(ctx, peer, patience, other) })
	}
	group.Wait()
	p.seen.keep(targets)
	before := p.others
	p.others = make(map[peerTarget]secondPort, len(targets))
	for i, result := range results {
		other := before[targets[i]]
		p.others[targets[i]] = secondPort{other.tried || result.Reached, result.OtherKnown, !result.Reached}
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
		return Result{Outcome: NotKnown, Never: chosen > 0, Detail: fmt.Sprintf("none of %d peers was ever reached", chosen)}
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

// askPeer asks one peer, and where that takes long its second port too. A peer that
// is reached the first time is asked at both.
func askPeer(ctx context.Context, peer Peer, patience time.Duration, other secondPort) PeerResult {
	result := PeerResult{Node: peer.Node, OtherKnown: other.known}
	second := func(ctx context.Context) bool {
		return peer.Other != 0 && isThere(knock(ctx, netip.AddrPortFrom(peer.Address.Addr(), peer.Other), patience))
	}
	pause := otherAfter
	if other.now {
		pause = 0
	}
	beside, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan bool, 1)
	timer := time.AfterFunc(pause, func() { found <- second(beside) })

	first, end := context.WithTimeout(ctx, patience)
	r, err := get(first, peer.Address, "/peer", "")
	end()
	result.Reached, result.Retransmits = r.connected || isThere(err), r.retransmits
	unneeded := result.Reached && other.tried
	if unneeded {
		cancel()
	}
	isOther := false
	switch {
	case !timer.Stop(): // it runs, or has
		isOther = <-found
	case !unneeded:
		isOther = second(ctx)
	}
	result.ReachedOther = isOther && !result.Reached
	result.OtherKnown = other.known || isOther
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
