package fleet

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// freshFor is how long an answer of a peer counts.
const freshFor = time.Minute

// talk is what this agent says to its peers and what they said.
type talk struct {
	mu sync.Mutex
	// own is the answer to others, page the same as they get it.
	own  verdict.Answer
	page atomic.Pointer[[]byte]
	// heard is what each peer said, and when. rounds counts.
	heard   map[string]heard
	rounds  uint64
	heardAt time.Time
	shares  map[probes.Condition]decide.Share

	dnsAgain, peersAgain again
}

// heard is what a peer said of its conditions: those that are bad.
type heard struct {
	at    time.Time
	known map[probes.Condition]bool // true: Degraded or worse
}

// Page returns the answer to GET /peer. It is rendered when what it says changes,
// not when it is asked for. Nobody may change it.
func (t *talk) Page() []byte {
	if page := t.page.Load(); page != nil {
		return *page
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.render()
}

// render makes the page anew. Its caller holds the lock.
func (t *talk) render() []byte {
	page, err := json.Marshal(t.own)
	if err != nil { // unreachable: no field of an Answer can fail
		page = []byte("{}")
	}
	t.page.Store(&page)
	return page
}

// SetAnswer sets this host's answer to its peers about the classes.
func (t *talk) SetAnswer(own verdict.Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	healthy, known := own.Classes[verdict.Pods]
	t.dnsAgain.observe(known && !healthy, time.Now(), dnsWait)
	own.Version, own.Levels = t.own.Version, t.own.Levels
	if reflect.DeepEqual(t.own, own) {
		return
	}
	own.Classes = maps.Clone(own.Classes)
	t.own = own
	t.render()
}

// SetLevels sets the levels in this host's answer to its peers.
func (t *talk) SetLevels(levels map[probes.Condition]probes.Level) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.Equal(t.own.Levels, levels) {
		return
	}
	t.own.Levels = maps.Clone(levels)
	t.render()
}

// isTroubled reports whether a condition of this host is bad, or would be but for
// the fleet brake.
func (t *talk) isTroubled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, level := range t.own.Levels {
		if level >= probes.Degraded {
			return true
		}
	}
	return false
}

// observe takes the answers of one round, by Node, of the peers that may be asked. The list
// of the agents has that many slices.
func (t *talk) observe(answers map[string]verdict.Answer, peers []verdict.Peer, slicesOfAgents int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.rounds, t.heardAt = t.rounds+1, now
	for _, peer := range peers {
		answer, found := answers[peer.Node]
		if !found || answer.Version != verdict.AnswerVersion {
			continue
		}
		said := heard{now, map[probes.Condition]bool{}}
		for condition := range t.own.Levels {
			if level := answer.Levels[condition]; level != probes.Unknown {
				said.known[condition] = level >= probes.Degraded
			}
		}
		t.heard[peer.Node] = said
	}
	maps.DeleteFunc(t.heard, func(node string, h heard) bool {
		isPeer := slices.ContainsFunc(peers, func(p verdict.Peer) bool { return p.Node == node })
		return !isPeer || now.Sub(h.at) > freshFor
	})
	t.count()
	missing := len(peers) - t.answeredWithin(missedAfter)
	t.peersAgain.observe(100*missing > fewMissing*len(peers), now, peersWait(slicesOfAgents))
}

// count makes the shares anew. Its caller holds the lock.
func (t *talk) count() {
	t.shares = map[probes.Condition]decide.Share{}
	for _, said := range t.heard {
		for condition, isBad := range said.known {
			share := t.shares[condition]
			share.Asked++
			if isBad {
				share.Bad++
			}
			t.shares[condition] = share
		}
	}
}

// answeredWithin returns how many peers answered within that time. The caller holds the
// lock.
func (t *talk) answeredWithin(length time.Duration) (count int) {
	for _, h := range t.heard {
		if time.Since(h.at) <= length {
			count++
		}
	}
	return count
}

// reports returns what the peers reported most recently, without how many are known.
func (t *talk) reports() decide.Peers {
	t.mu.Lock()
	defer t.mu.Unlock()
	peers := decide.Peers{Rounds: t.rounds}
	if time.Since(t.heardAt) <= freshFor {
		peers.Shares = t.shares
	}
	return peers
}

// status returns how many peers answered within the last minute, and the classes that this
// host tells its peers. Nobody may change these.
func (t *talk) status() (answered int, classes map[verdict.Class]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answeredWithin(freshFor), t.own.Classes
}
