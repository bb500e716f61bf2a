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
	turns *Turns
	// alert: something is wrong on this host.
	alert bool
	// found is what is known of the peers that count.
	found []PeerResult
}

// secondPort is what is known of a peer's second port.
type secondPort struct {
	// tried: it was asked once while the first one answered. known: it answered
	// then, or later. One that does not may be closed to us.
	tried, known bool
	// now: the first one did not answer when it was asked before, so both are asked
	// at the same time.
	now bool
}

// secondPort returns that of a peer.
func (t turn) secondPort() secondPort {
	return secondPort{t.reached, t.result.OtherKnown, t.round > 0 && !t.result.Reached}
}

// otherAfter is how long the first port may take before the second one is asked
// beside it: waiting for one after the other would make a bad round twice as
// long. For the same reason the other peers are asked then.
const otherAfter = 300 * time.Millisecond

func (*peersCheck) class() Class { return Peers }

func (p *peersCheck) check(ctx context.Context, patience time.Duration) Result {
	chosen := p.peers()
	now, rest := p.turns.Choose(chosen, p.alert)
	for peer, result := range p.ask(ctx, patience, now, rest) {
		p.turns.Take(peer, result)
	}
	p.found = p.turns.Results(chosen)
	return p.judge(len(chosen))
}

// ask asks peers, and the rest of them as soon as one has news or takes its time.
func (p *peersCheck) ask(ctx context.Context, patience time.Duration, now, rest []Peer) map[Peer]PeerResult {
	var mu sync.Mutex
	results := make(map[Peer]PeerResult, len(now))
	var group sync.WaitGroup
	ask := func(peer Peer, doubt func()) {
		group.Go(func() {
			result := askPeer(ctx, peer, patience, p.turns.last[peer].secondPort(), doubt)
			if p.turns.IsNews(peer, result) {
				doubt()
			}
			mu.Lock()
			defer mu.Unlock()
			results[peer] = result
		})
	}
	askRest := sync.OnceFunc(func() {
		for _, peer := range rest {
			ask(peer, func() {})
		}
	})
	for _, peer := range now {
		ask(peer, askRest)
	}
	group.Wait()
	return results
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
	if 100*asked <= lowPercent*chosen { // a host that was cut off before the start reaches as few
		return Result{Outcome: NotKnown, Never: true, Detail: fmt.Sprintf("only %d of %d peers were ever reached", asked, chosen)}
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

// askPeer asks one peer, and where that takes long its second port too: it calls
// doubt then. A peer that is reached the first time is asked at both.
func askPeer(ctx context.Context, peer Peer, patience time.Duration, other secondPort, doubt func()) PeerResult {
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
	timer := time.AfterFunc(pause, func() {
		doubt()
		found <- second(beside)
	})

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

// said returns what the peers said in the newest round, by Node.
func (p *peersCheck) said() map[string]Answer {
	answers := make(map[string]Answer, len(p.found))
	for _, peer := range p.found {
		if peer.Answer != nil && !peer.Carried {
			answers[peer.Node] = *peer.Answer
		}
	}
	return answers
}
