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
	// found is what is known of the peers that count. never is how many were asked
	// some times and never reached.
	found []PeerResult
	never int
}

// secondPort is what is known of a peer's second port. It is the kubelet's, so it is
// asked only if it tells something.
type secondPort struct {
	// tried: it was asked once while the first one answered. known: it answered
	// then, or later. One that does not may be closed to us.
	tried, known bool
	// open: a connection was made to it.
	open bool
	// now: the first one did not answer when it was asked before, so both are asked
	// at the same time.
	now bool
	// spared: the first one takes its time and answers, so it is waited for.
	spared bool
}

// isBeside reports whether it may be asked beside the first one.
func (s secondPort) isBeside() bool { return s.tried && !s.spared }

// pause is how long the first one may take until then.
func (s secondPort) pause() time.Duration {
	if s.now {
		return 0
	}
	return otherAfter
}

// otherAfter is how long the first port may take before the second one is asked
// beside it: waiting for one after the other would make a bad round twice as
// long. For the same reason the other peers are asked then.
const otherAfter = 300 * time.Millisecond

func (*peersCheck) class() Class { return Peers }

func (p *peersCheck) check(ctx context.Context, patience time.Duration) Result {
	chosen := p.peers()
	now, rest := p.turns.Choose(chosen, p.alert)
	results := p.ask(ctx, patience, now, rest)
	doubtRefusals(ctx, patience/2, results)
	for peer, result := range results {
		p.turns.Take(peer, result)
	}
	p.found, p.never = p.turns.Results(chosen), p.turns.NeverReached()
	return p.judge(chosen)
}

// ask asks peers, and the rest of them as soon as one has news or takes its time.
func (p *peersCheck) ask(ctx context.Context, patience time.Duration, now, rest []Peer) map[Peer]PeerResult {
	var mu sync.Mutex
	results := make(map[Peer]PeerResult, len(now))
	var group sync.WaitGroup
	ask := func(peer Peer, doubt func()) {
		group.Go(func() {
			result := askPeer(ctx, peer, patience, p.turns.secondPort(peer), doubt)
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
func (p *peersCheck) judge(chosen []Peer) Result {
	asked, reached := len(p.found), 0
	for _, peer := range p.found {
		if peer.Reached {
			reached++
		}
	}
	if asked == 0 {
		return Result{Outcome: NotKnown, Never: len(chosen) > 0, Detail: fmt.Sprintf("none of %d peers was ever reached%s", len(chosen), atPort(chosen))}
	}
	if 100*asked <= lowPercent*len(chosen) { // a host that was cut off before the start reaches as few
		return Result{Outcome: NotKnown, Never: true, Detail: fmt.Sprintf("only %d of %d peers were ever reached%s", asked, len(chosen), atPort(chosen))}
	}
	outcome := NotKnown
	switch {
	case 5*reached >= 4*asked:
		outcome = Well
	case 5*reached <= asked:
		outcome = Failed
	}
	detail := fmt.Sprintf("reached %d of %d peers", reached, asked)
	if p.never > 0 {
		detail += fmt.Sprintf("; %d of %d were never reached%s", p.never, len(chosen), atPort(chosen))
	}
	return Result{Outcome: outcome, Detail: detail}
}

// atPort names taintlet's port. All agents of a fleet listen at the same.
func atPort(peers []Peer) string {
	if len(peers) == 0 {
		return ""
	}
	return fmt.Sprintf(" at TCP port %d", peers[0].Address.Port())
}

// askPeer asks one peer, and its second port too where that tells something: when
// the peer is reached for the first time, and when it is not reached any more. The
// second port of a peer that takes long is asked beside the first: doubt is called
// then.
func askPeer(ctx context.Context, peer Peer, patience time.Duration, other secondPort, doubt func()) PeerResult {
	result := PeerResult{Node: peer.Node, OtherKnown: other.known, otherOpen: other.open}
	isBeside := other.isBeside()
	beside, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan error, 1)
	timer := time.AfterFunc(other.pause(), func() {
		doubt()
		err := errNotAsked
		if isBeside {
			err = peer.knockOther(beside, patience)
		}
		found <- err
	})

	first, end := context.WithTimeout(ctx, patience)
	r, err := get(first, peer.Address, "/peer", "")
	end()
	result.Reached, result.Retransmits = r.connected || isThere(err), r.retransmits
	result.refused = result.Reached && !r.connected
	if result.Reached {
		cancel()
	}
	otherErr, isLate := errNotAsked, !timer.Stop()
	if isLate {
		otherErr = <-found
		result.beside = isBeside && result.Reached && !other.now
	}
	if isAsked := isLate && isBeside; !isAsked && result.Reached != other.tried {
		otherErr = peer.knockOther(ctx, patience/2) // the API server is asked in this round yet
	}
	result.tookOther(otherErr)
	if err == nil {
		result.Answer = r.answer()
	}
	return result
}

// answer returns what a peer said; nil: nothing that can be read.
func (r *reply) answer() *Answer {
	if r.status != http.StatusOK {
		return nil
	}
	a, err := parseAnswer(r.body)
	if err != nil {
		return nil
	}
	return a
}

// tookOther takes in how a connection to the second port ended.
func (p *PeerResult) tookOther(err error) {
	isOther := isThere(err)
	p.otherOpen = p.otherOpen || err == nil
	p.ReachedOther = isOther && !p.Reached
	p.OtherKnown = p.OtherKnown || isOther
}

var errNotAsked = errors.New("not asked")

// knockOther makes a connection to the peer's second port.
func (p Peer) knockOther(ctx context.Context, patience time.Duration) error {
	if p.Other == 0 {
		return errNotAsked
	}
	return knock(ctx, netip.AddrPortFrom(p.Address.Addr(), p.Other), patience)
}

// doubtRefusals takes those peers for not reached that refuse at their second port
// too, where a connection was made before. Who refuses is there, but somebody between
// may refuse for all: this host's own packet filter may. So the second ports, which
// are the kubelets', are tried only when nearly all that were asked refuse.
func doubtRefusals(ctx context.Context, patience time.Duration, results map[Peer]PeerResult) {
	var refused []Peer
	for peer, result := range results {
		if result.refused && result.otherOpen {
			refused = append(refused, peer)
		}
	}
	if len(refused) < fewestPeers || 100*len(refused) < wellPercent*len(results) {
		return
	}
	errs := make([]error, len(refused))
	var group sync.WaitGroup
	for i, peer := range refused {
		group.Go(func() { errs[i] = peer.knockOther(ctx, patience) })
	}
	group.Wait()
	for i, peer := range refused {
		if errs[i] != nil && isThere(errs[i]) {
			result := results[peer]
			result.Reached = false
			results[peer] = result
		}
	}
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
