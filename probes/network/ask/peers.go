package ask

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Peers asks the agents on other Nodes, each from a new source port, whose packets may take another
// path.
type Peers struct {
	turns *verdict.Rotation
	// wasWell: most peers were reached once, so that a suspicion of the agent before is over.
	wasWell bool
	// Found are the results of the peers that count. Never is how many others were chosen and never
	// reached.
	Found []verdict.PeerResult
	Never int
}

// otherAfter is how long a peer may take before the other peers are asked beside it:
// waiting for one after the other would make a bad round twice as long. otherPatience is
// how long its second port may take then, as the API server is asked in this round yet.
const otherAfter, otherPatience = 300 * time.Millisecond, 500 * time.Millisecond

// NewPeers returns the class that asks peers in turns, in rounds that come each period.
func NewPeers(period time.Duration) *Peers { return &Peers{turns: verdict.NewRotation(period)} }

// Forget resets the class: it was never healthy, and no peer was reached.
func (p *Peers) Forget() {
	p.turns.Forget()
	p.Found = nil
}

// Ask implements Check.
func (p *Peers) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	p.turns.Suspected = in.Suspected && !p.wasWell
	now, rest := p.turns.Choose(in.Peers, in.Troubled)
	results := p.ask(ctx, patience, now, rest)
	doubtRefusals(ctx, patience/2, results)
	for peer, result := range results {
		p.turns.Take(peer, result)
	}
	p.Found = p.turns.Results(in.Peers)
	p.Never = verdict.Nodes(in.Peers) - len(p.Found)
	result := verdict.PeersResult(p.Found, in.Peers)
	p.wasWell = p.wasWell || result.Outcome == verdict.Well
	return result
}

// ask asks peers. It asks the rest as soon as one peer has changed or is slow.
func (p *Peers) ask(ctx context.Context, patience time.Duration, now, rest []verdict.Peer) map[verdict.Peer]verdict.PeerResult {
	type answer struct {
		peer   verdict.Peer
		result verdict.PeerResult
	}
	results, answers, awaited := make(map[verdict.Peer]verdict.PeerResult, len(now)), make(chan answer), 0
	ask := func(peers []verdict.Peer) {
		for _, peer := range peers {
			go func() { answers <- answer{peer, p.askOne(ctx, peer, patience)} }()
		}
		awaited += len(peers)
	}
	ask(now)
	slow := time.NewTimer(otherAfter)
	defer slow.Stop()
	for awaited > 0 {
		isNews := true
		select {
		case a := <-answers:
			awaited--
			results[a.peer], isNews = a.result, p.turns.HasChanged(a.peer, a.result)
		case <-slow.C:
		}
		if isNews {
			ask(rest)
			rest = nil
		}
	}
	return results
}

// askOne asks one peer, and its second port too where that tells something: when the peer is
// reached for the first time, and when it is not reached any more. In the rounds that follow both
// are asked at the same time.
func (p *Peers) askOne(ctx context.Context, peer verdict.Peer, patience time.Duration) verdict.PeerResult {
	last, wasReached := p.turns.Last(peer)
	result := verdict.PeerResult{Node: peer.Node, OtherKnown: last.OtherKnown, OtherOpen: last.OtherOpen}
	isMissing := wasReached && !last.Reached
	beside, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan error, 1)
	if isMissing {
		go func() { found <- knockOther(beside, peer, patience) }()
	}

	r, err := p.request(ctx, peer, patience, &result)
	result.Reached, result.Retransmits = r.connected || isThere(err), r.retransmits
	result.Refused = result.Reached && !r.connected
	result.Hangs = r.connected && isTimeout(err)
	if result.Reached {
		cancel()
	}
	otherErr := errNotAsked
	switch {
	case isMissing:
		otherErr = <-found
	case result.Reached != wasReached:
		otherErr = knockOther(ctx, peer, min(patience, otherPatience))
	}
	isOther := isThere(otherErr)
	result.ReachedOther = isOther && !result.Reached
	result.OtherKnown, result.OtherOpen = result.OtherKnown || isOther, result.OtherOpen || otherErr == nil
	return result
}

// request asks a peer at its first port, with full packets in its turn, and with small ones where these get no
// answer.
func (p *Peers) request(ctx context.Context, peer verdict.Peer, patience time.Duration, result *verdict.PeerResult) (r reply, err error) {
	if p.turns.IsFull(peer) {
		r, err = askFull(ctx, peer, otherAfter, result)
	}
	if result.Answer == nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if r, err = get(ctx, peer.Address, "/peer", ""); err == nil {
			result.Answer = r.answer()
		}
	}
	if result.Answer == nil {
		result.Full = verdict.NotTried
	}
	return r, err
}

var errNotAsked = errors.New("not asked")

// knockOther makes a connection to the peer's second port.
func knockOther(ctx context.Context, p verdict.Peer, patience time.Duration) error {
	if p.Other == 0 {
		return errNotAsked
	}
	return knock(ctx, netip.AddrPortFrom(p.Address.Addr(), p.Other), patience)
}

// doubtRefusals counts a refusing peer as not reached if its second port, where a connection was
// made before, refuses as well: a packet filter on the way, such as this host's own, can refuse in
// the peers' name. It does so only when nearly all queried peers refuse.
func doubtRefusals(ctx context.Context, patience time.Duration, results map[verdict.Peer]verdict.PeerResult) {
	var refused []verdict.Peer
	for peer, result := range results {
		if result.Refused && result.OtherOpen {
			refused = append(refused, peer)
		}
	}
	if !verdict.NearlyAllRefuse(len(refused), len(results)) {
		return
	}
	errs := Together(refused, func(peer verdict.Peer) error { return knockOther(ctx, peer, patience) })
	for i, peer := range refused {
		if errs[i] != nil && isThere(errs[i]) {
			result := results[peer]
			result.Reached = false
			results[peer] = result
		}
	}
}

// fullPatience is how long an exchange may take once connected: packets are sent again after 0.2 and 0.6 s.
const fullPatience = time.Second

// askFull asks a peer with a request of a full packet, as large as the kernel thinks that packets
// may be on this way, for an answer of a full packet. A peer that takes longer than patience to
// connect is not asked, because the ordinary question is asked after this one.
func askFull(ctx context.Context, peer verdict.Peer, patience time.Duration, result *verdict.PeerResult) (reply, error) {
	dialing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := dial(dialing, peer.Address, true)
	if err != nil {
		return reply{}, err
	}
	ctx, end := context.WithTimeout(ctx, fullPatience)
	defer end()
	request := padded(peer, int(infoOf(c).Snd_mss))
	r, err := exchange(ctx, c, request)
	result.FullNow, result.FullBytes = true, len(request)
	switch {
	case err != nil && isTimeout(err):
		result.Full = verdict.Lost
	case err == nil:
		if result.Answer = r.answer(); result.Answer != nil && r.bytes >= len(request) {
			result.Full = verdict.Passed
		}
	}
	return r, err
}

// padded is a request to a peer that is padded to this many bytes, at most to LongestPadded.
func padded(peer verdict.Peer, bytes int) string {
	begin := "GET /peer HTTP/1.1\r\nHost: " + peer.Address.String() + "\r\n" + verdict.PaddingHeader + ": "
	const end = "\r\n\r\n"
	return begin + strings.Repeat("x", max(0, min(bytes, verdict.LongestPadded)-len(begin)-len(end))) + end
}
