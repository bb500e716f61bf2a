package fleet

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// freshFor is how long an answer of a peer counts.
const freshFor = time.Minute

// heard is what a peer said, and when.
type heard struct {
	at time.Time
	verdict.Answer
}

// Page returns the answer to GET /peer.
func (f *Fleet) Page() []byte {
	f.mu.Lock()
	own := f.own // its maps are replaced, never changed
	f.mu.Unlock()
	page, _ := json.Marshal(own) // no field of an Answer can fail
	return page
}

// SetDecided sets the levels in this host's answer to its peers, and whether its Node is under
// maintenance. types are the conditions by which other Nodes are under maintenance. The caller must
// not change levels afterwards.
func (f *Fleet) SetDecided(levels map[probes.Condition]probes.Level, isMaintained bool, types []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own.Levels, f.own.Maintenance, f.maintenance = levels, isMaintained, types
}

// SetNode takes in the own Node. Its zone chooses peers from the next list on. Its first version
// says whether the host suspected itself, because only the agent before this one knew that peers
// were reached.
func (f *Fleet) SetNode(own *taints.Node, isFirst bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.zone = own.Labels[corev1.LabelTopologyZone]
	if c := own.Condition(decide.ConditionType(verdict.Condition)); isFirst {
		f.in.Suspected = c != nil && c.Status == taints.ConditionUnknown && verdict.IsSuspicion(c.Reason)
	}
}

// take takes in the answers of the peers in a round, and this host's answer to them about the classes.
func (f *Fleet) take(news *verdict.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.rounds++
	for i := range news.Round.Peers {
		if p := &news.Round.Peers[i]; p.Answer != nil && !p.Carried {
			f.heard[p.Node] = heard{now, *p.Answer}
		}
	}
	maps.DeleteFunc(f.heard, func(node string, h heard) bool {
		_, isPeer := f.zones[node]
		return !isPeer || now.Sub(h.at) > freshFor
	})
	known := len(f.zones)
	f.peersAgain.observe(100*(known-f.answeredWithin(missedAfter)) > fewMissing*known, now, f.peersWait)
	healthy, isKnown := news.Own.Classes[verdict.Pods]
	f.dnsAgain.observe(isKnown && !healthy, now, dnsWait)
	levels, isMaintained := f.own.Levels, f.own.Maintenance
	f.own, f.classes = news.Own, news.Round.Known(&news.Own)
	f.own.Version, f.own.Levels, f.own.Maintenance = verdict.AnswerVersion, levels, isMaintained
}

// answeredWithin returns how many peers answered within that time. The caller holds the lock.
func (f *Fleet) answeredWithin(length time.Duration) (count int) {
	for _, h := range f.heard {
		if time.Since(h.at) <= length {
			count++
		}
	}
	return count
}

// Peers returns what the peers reported most recently, for the decider.
func (f *Fleet) Peers() decide.Peers {
	f.mu.Lock()
	defer f.mu.Unlock()
	peers := decide.Peers{Known: len(f.zones), Rounds: f.rounds, Shares: map[probes.Condition]decide.Share{}}
	if !f.isRead {
		peers.Known = -1
	}
	for node, said := range f.heard {
		if time.Since(said.at) > freshFor {
			continue
		}
		isNear := f.zone != "" && f.zones[node] == f.zone
		for condition := range f.own.Levels {
			if level := said.Levels[condition]; level != probes.Unknown {
				peers.Shares[condition] = peers.Shares[condition].With(level >= probes.Degraded, isNear)
			}
		}
	}
	return peers
}
