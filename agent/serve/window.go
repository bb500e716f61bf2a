package serve

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/taintlet/taintlet/taints/pace"
)

// answers are how many requests for /peer are answered in a second. On average 12 agents query an
// agent, every 5 s, and every second while they suspect themselves. About 300 agents query the only
// Node of a zone. Several agents may share an address, behind a NAT.
type answers struct{ toSource, toBlock, toAgents, toOthers int }

func defaultAnswers() answers {
	return answers{toSource: 20, toBlock: 60, toAgents: 300, toOthers: 200}
}

// window counts the answers of one second. Answers to other clients do not reduce those to the
// fleet's agents and to the host itself, and no source or block of addresses can use up all answers
// to other clients.
type window struct {
	most answers

	mu             sync.Mutex
	began          time.Time
	agents, others int
	by             map[netip.Prefix]int // sources and blocks: at most two for each answer
}

// allows reports whether one more request of a source is answered, and counts it then.
func (w *window) allows(source netip.Addr, isAgent bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if since := now.Sub(w.began); since < 0 || since >= time.Second || w.by == nil {
		w.began, w.agents, w.others, w.by = now, 0, 0, map[netip.Prefix]int{}
	}
	one, block := netip.PrefixFrom(source, source.BitLen()), blockOf(source)
	switch {
	case w.by[one] >= w.most.toSource:
		return false
	case isAgent && w.agents >= w.most.toAgents:
		return false
	case !isAgent && (w.others >= w.most.toOthers || w.by[block] >= w.most.toBlock):
		return false
	}
	w.by[one]++
	if isAgent {
		w.agents++
		return true
	}
	w.others++
	w.by[block]++
	return true
}

// blockOf returns the addresses that one client may easily have: a /24 of IPv4, a /64
// of IPv6.
func blockOf(source netip.Addr) netip.Prefix {
	bits := 64
	if source.Is4() {
		bits = 24
	}
	block, err := source.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // the zero address
	}
	return block
}

// refuseAfter is how long a refusal takes. Without a pause, a client that asks again at
// once takes a quarter of a core with refusals alone. With one, it gets 16 a second on
// the 8 connections that it may have.
const refuseAfter = 500 * time.Millisecond

// refuse answers 429, after a while, and ends the connection.
func refuse(w http.ResponseWriter, r *http.Request) {
	pace.Sleep(r.Context(), refuseAfter) // less where the client is gone, or the agent ends
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusTooManyRequests)
}
