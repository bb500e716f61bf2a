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
}

// heard is what a peer said of its conditions: those that are bad.
type heard struct {
	at    time.Time
	known map[probes.Condition]bool // true: Degraded or worse
}

// Page returns the answer to GET /peer. It is rendered when what it says changes,
// not when it is asked for. Nobody may change it.
func (f *Fleet) Page() []byte {
	if page := f.talk.page.Load(); page != nil {
		return *page
	}
	f.talk.mu.Lock()
	defer f.talk.mu.Unlock()
	return f.talk.render()
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

// Says takes what this host is to answer its peers about the classes.
func (f *Fleet) Says(own verdict.Answer) {
	f.talk.mu.Lock()
	defer f.talk.mu.Unlock()
	well, known := own.Classes[verdict.Pods]
	f.dnsAgain.hear(known && !well, time.Now(), dnsWait)
	own.Version, own.Levels = f.talk.own.Version, f.talk.own.Levels
	if reflect.DeepEqual(f.talk.own, own) {
		return
	}
	own.Classes = maps.Clone(own.Classes)
	f.talk.own = own
	f.talk.render()
}

// Tell takes the levels that this host is to answer its peers.
func (f *Fleet) Tell(levels map[probes.Condition]probes.Level) {
	f.talk.mu.Lock()
	defer f.talk.mu.Unlock()
	if maps.Equal(f.talk.own.Levels, levels) {
		return
	}
	f.talk.own.Levels = maps.Clone(levels)
	f.talk.render()
}

// isTroubled reports whether a condition of this host is bad, or would be but for
// the fleet brake.
func (f *Fleet) isTroubled() bool {
	f.talk.mu.Lock()
	defer f.talk.mu.Unlock()
	for _, level := range f.talk.own.Levels {
		if level >= probes.Degraded {
			return true
		}
	}
	return false
}

// Heard takes what the peers answered in one round, by Node. Only what peers say
// of conditions that this host has is kept.
func (f *Fleet) Heard(answers map[string]verdict.Answer) {
	asked, count := f.Surroundings().Peers, f.Slices()
	t := &f.talk
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.rounds, t.heardAt = t.rounds+1, now
	for _, peer := range asked {
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
		isPeer := slices.ContainsFunc(asked, func(p verdict.Peer) bool { return p.Node == node })
		return !isPeer || now.Sub(h.at) > freshFor
	})
	t.count()
	answered := 0
	for _, h := range t.heard {
		if now.Sub(h.at) <= missedAfter {
			answered++
		}
	}
	f.peersAgain.hear(100*(len(asked)-answered) > fewMissing*len(asked), now, peersWait(count))
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

// Said returns what the peers said most recently, for the decider.
func (f *Fleet) Said() decide.Peers {
	f.mu.Lock()
	known := len(f.peers)
	if !f.isRead {
		known = -1
	}
	f.mu.Unlock()
	t := &f.talk
	t.mu.Lock()
	defer t.mu.Unlock()
	peers := decide.Peers{Known: known, Rounds: t.rounds}
	if time.Since(t.heardAt) <= freshFor {
		peers.Shares = t.shares
	}
	return peers
}

// Status is what metrics show of a fleet.
type Status struct {
	// Known peers, and how many of these answered within the last minute.
	Known, Answered int
	// Classes that are known: true is well.
	Classes map[verdict.Class]bool
	// Unread are the lists that were read, by whether the last try failed: then the list
	// before it is in use.
	Unread map[string]bool
}

// Status returns what metrics show. Nobody may change its maps.
func (f *Fleet) Status() Status {
	f.mu.Lock()
	s := Status{Known: len(f.peers), Unread: f.unread}
	f.mu.Unlock()
	f.talk.mu.Lock()
	defer f.talk.mu.Unlock()
	s.Classes = f.talk.own.Classes
	for _, h := range f.talk.heard {
		if time.Since(h.at) <= freshFor {
			s.Answered++
		}
	}
	return s
}
