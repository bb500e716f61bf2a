package decide

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// change renders what the Node should carry: taints, record, held annotation.
func (s *State) change(cfg *config.Config, node *Node) taints.Change {
	var change taints.Change
	var held []string
	for _, w := range s.want {
		change.Taints = append(change.Taints, corev1.Taint{Key: w.taint.Key, Value: w.taint.Value, Effect: w.taint.Effect})
		if w.via == taints.Kept {
			held = append(held, w.taint.Key)
		}
	}
	change.Owned = s.mayRemove(cfg, node)
	change.Conditions = s.report
	if s.revision == 0 {
		return change // nothing was ever decided: nothing to remember
	}
	_, owned, _ := taints.Plan(node.Spec.Taints, change.Owned, change.Taints)
	owned = append(owned, s.unasked(cfg, node, upTo(maxUnasked, s.owned))...)
	change.Annotations = map[string]string{
		taints.RecordAnnotation: s.render(owned),
		taints.HeldAnnotation:   strings.Join(held, ","),
	}
	return change
}

// maxUnasked bounds the length of the pairs that the record names although no
// rule asks for them, so that a forged list cannot make it too long to be read.
const maxUnasked = 1000

// upTo returns the first of the pairs, those that are no longer than so many
// bytes together.
func upTo(length int, pairs []taints.Pair) []taints.Pair {
	for i, pair := range pairs {
		if length -= len(pair.String()); length < 0 {
			return pairs[:i]
		}
	}
	return pairs
}

// unasked returns those of our pairs that stand on the Node and that no rule
// asks for. They are not removed, since the list may be forged, and not
// forgotten: a configuration with their rule removes them.
func (s *State) unasked(cfg *config.Config, node *Node, ours []taints.Pair) []taints.Pair {
	var pairs []taints.Pair
	for _, pair := range ours {
		if !cfg.Produces(pair) && !slices.Contains(s.dropped, pair) && !slices.Contains(pairs, pair) && taints.Has(node.Spec.Taints, pair) {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// mayRemove returns the pairs that the Change may replace or remove: those of
// the record that this configuration or a built-in rule can produce, or that
// this process itself produced by a configuration it had before. A kept
// pair that is there already is taken over: the lifecycle controller put it
// there and would take it away. One that is to go while the kubelet's own
// condition asks for it is left to that controller.
func (s *State) mayRemove(cfg *config.Config, node *Node) []taints.Pair {
	var owned []taints.Pair
	for _, pair := range s.owned {
		if (cfg.Produces(pair) || slices.Contains(s.dropped, pair)) && (wantsPair(s.want, pair) || !s.facts.LifecycleController || !taints.ControllerWants(node.Node, pair)) {
			owned = append(owned, pair)
		}
	}
	for _, w := range s.want {
		pair := w.taint.Pair()
		if w.via == taints.Kept && taints.Has(node.Spec.Taints, pair) && !slices.Contains(owned, pair) {
			owned = append(owned, pair)
		}
	}
	return owned
}

func wantsPair(want []wanted, p taints.Pair) bool {
	return slices.ContainsFunc(want, func(w wanted) bool { return w.taint.Pair() == p })
}

// render writes the record.
func (s *State) render(owned []taints.Pair) string {
	r := record{
		Version:    recordVersion,
		Revision:   s.revision,
		Boot:       s.boot.ID,
		At:         s.decidedAt.Sub(s.boot.At),
		Time:       s.decidedTime,
		Instance:   s.instance,
		EvictedAt:  s.sinceBoot(s.evictedAt),
		Owned:      owned,
		Conditions: make(map[probes.Condition]recordCondition, conditionCount),
	}
	if !s.bucket.fullAt.IsZero() {
		r.TokensAt = s.bucket.fullAt.Sub(s.boot.At)
	}
	for _, condition := range probes.Conditions() {
		c := &s.conditions[index(condition)]
		entry := recordCondition{Level: c.debounce.Level, Penalty: c.debounce.Penalty, SetAt: s.sinceBoot(c.debounce.SetAt)}
		for _, level := range []probes.Level{probes.Degraded, probes.Critical} {
			if d := *c.disputeOf(level); d != (dispute{}) {
				if entry.Dispute == nil {
					entry.Dispute = map[string]recordDispute{}
				}
				entry.Dispute[level.String()] = recordDispute{d.stage, s.sinceBoot(d.until), s.sinceBoot(d.lostAt)}
			}
		}
		r.Conditions[condition] = entry
	}
	text, err := json.Marshal(r)
	if err != nil { // unreachable: no field of the record can fail
		return ""
	}
	return string(text)
}

func (s *State) sinceBoot(t time.Time) *time.Duration {
	if t.IsZero() {
		return nil
	}
	d := t.Sub(s.boot.At)
	return &d
}

// restore takes over what the Node's record remembers. Evidence that was
// collected before is kept; the taints that stand stay until new evidence
// clears them.
func (s State) restore(cfg *config.Config, node *Node, now time.Time, d *Decision) State {
	s.restored, s.uid = true, node.UID
	if node.recordErr != nil {
		if s.meet(node, now, d) {
			d.Notices = append(d.Notices, Notice{Kind: RecordRefused, Reason: "UnreadableRecord", Message: node.recordErr.Error() + "; nothing is removed that cannot be proven to be taintlet's own"})
		}
		return s
	}
	r := node.record
	at := r.timeline(s.boot)
	past := func(t *time.Duration) time.Time {
		if t == nil {
			return time.Time{}
		}
		return earlier(at(*t), now)
	}
	s.revision = r.Revision
	s.decidedAt, s.decidedTime = at(r.At), r.Time
	if r.Revision > 0 {
		// The record is written anew, with this instance's name and in the time
		// of this boot: whoever wrote it before has to learn that it is over.
		s.instance.Term, s.dirty = r.Instance.Term+1, true
	}
	s.bucket = bucket{at(r.TokensAt)}.within(cfg.WriteBudget, now)
	s.evictedAt = past(r.EvictedAt)
	for _, condition := range probes.Conditions() {
		entry, found := r.Conditions[condition]
		if !found {
			continue
		}
		c := &s.conditions[index(condition)]
		c.debounce.Level, c.debounce.Penalty, c.debounce.SetAt = entry.Level, min(entry.Penalty, maxPenalty), past(entry.SetAt)
		if entry.Level == probes.Critical && !ownsCritical(cfg, condition, r.Owned) {
			c.debounce.Level = probes.Degraded // an eviction begins with a look, an Event and a slot
		}
		for _, level := range []probes.Level{probes.Degraded, probes.Critical} {
			saved := entry.Dispute[level.String()]
			*c.disputeOf(level) = dispute{stage: min(saved.Stage, withdrawn), lostAt: past(saved.LostAt)}
			if saved.Until != nil {
				c.disputeOf(level).until = earlier(at(*saved.Until), now.Add(contestFor))
			}
		}
	}
	return s
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// conditionPrefix makes our condition types of the conditions' names.
const conditionPrefix = "Host"

// nodeConditions renders our condition types.
func (s *State) nodeConditions(cfg *config.Config, now time.Time) []corev1.NodeCondition {
	conditions := make([]corev1.NodeCondition, 0, conditionCount)
	for _, condition := range probes.Conditions() {
		c := &s.conditions[index(condition)]
		blind := c.debounce.seenAt.IsZero() || c.debounce.unknownFor(now) >= cfg.Debounce(condition).UnknownAfter.Duration
		conditions = append(conditions, c.nodeCondition(condition, blind))
	}
	return conditions
}

func (c *perCondition) nodeCondition(condition probes.Condition, blind bool) corev1.NodeCondition {
	shown := corev1.NodeCondition{
		Type:    corev1.NodeConditionType(conditionPrefix + string(condition)),
		Status:  corev1.ConditionFalse,
		Reason:  c.last.Reason,
		Message: c.last.Message,
	}
	switch {
	case c.debounce.Level > probes.OK:
		shown.Status = corev1.ConditionTrue
		if classOf(c.last) < bad && c.because.Level > probes.OK {
			shown.Reason = c.because.Reason
			shown.Message = c.because.Message + "; now " + c.last.Message
		}
	case blind:
		shown.Status = corev1.ConditionUnknown
	}
	return shown
}

// ownsCritical reports whether the taint of the condition's rule for Critical is
// among the pairs.
func ownsCritical(cfg *config.Config, c probes.Condition, owned []taints.Pair) bool {
	return slices.ContainsFunc(cfg.Rules, func(r config.Rule) bool {
		return r.Condition == c && r.Level == probes.Critical && slices.Contains(owned, r.Taint.Pair())
	})
}
