package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// recordVersion is the version of the record that this release writes. A newer
// one on a Node makes the agent read-only: it may not undo what it does not
// understand.
const recordVersion = 1

// maxRecord is the longest record that is read, in bytes. This release writes
// some 2 KiB; whoever may write annotations may write 256 KiB.
const maxRecord = 16 << 10

// maxPenalty is all that damping needs: a second doubled so often is longer
// than any maxClearAfter. A forged record must not damp for weeks.
const maxPenalty = 32

var errNewer = errors.New("the record was written by a newer release")

// Boot is one boot of the host and when it began, on the same clock that Step
// is given. Times in the record are durations since boot: CLOCK_BOOTTIME goes
// on through suspend and knows nothing of steps of the wall clock.
type Boot struct {
	ID string
	At time.Time
}

// record is the annotation taintlet.dev/record: all that must survive the
// process. Fields that this release does not know are skipped.
type record struct {
	Version int `json:"version"`
	// Revision grows with every decision that is written. It tells a Node that
	// has not seen our last decision from one on which somebody undid it.
	Revision uint64 `json:"revision"`
	// Boot and At say when: nanoseconds since the boot with that ID. Time is
	// the same for people; nothing is decided by it.
	Boot string        `json:"boot"`
	At   time.Duration `json:"at"`
	Time string        `json:"time,omitempty"`
	// Instance is the agent that wrote the record.
	Instance instance `json:"instance"`
	// Owned are the pairs on the Node that are ours.
	Owned []taints.Pair `json:"owned,omitempty"`
	// TokensAt is when the write budget is full again.
	TokensAt time.Duration `json:"tokensAt,omitempty"`
	// EvictedAt is when the Node last stepped up to Critical.
	EvictedAt  *time.Duration                       `json:"evictedAt,omitempty"`
	Conditions map[probes.Condition]recordCondition `json:"conditions"`
}

type recordCondition struct {
	Level   probes.Level             `json:"level"`
	Penalty float64                  `json:"penalty,omitempty"`
	SetAt   *time.Duration           `json:"setAt,omitempty"`
	Reason  string                   `json:"reason,omitempty"`  // of the sample that set it
	Dispute map[string]recordDispute `json:"dispute,omitempty"` // by level
	recordTold
}

type recordDispute struct {
	Stage  stage          `json:"stage,omitempty"`
	Until  *time.Duration `json:"until,omitempty"`
	LostAt *time.Duration `json:"lostAt,omitempty"`
}

// parseRecord reads the annotation. An absent one is an empty record.
func parseRecord(text string) (record, error) {
	switch {
	case text == "":
		return record{}, nil
	case len(text) > maxRecord:
		return record{}, fmt.Errorf("annotation %s: %d bytes, more than %d", taints.RecordAnnotation, len(text), maxRecord)
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		var v struct{ Version int }
		if json.Unmarshal([]byte(text), &v) == nil && v.Version > recordVersion {
			return record{}, errNewer
		}
		return record{}, fmt.Errorf("annotation %s: %s", taints.RecordAnnotation, cut(err.Error()))
	}
	switch {
	case r.Version > recordVersion:
		return record{}, errNewer
	case r.Version != recordVersion:
		return record{}, fmt.Errorf("annotation %s: version %d is not %d", taints.RecordAnnotation, r.Version, recordVersion)
	case r.Revision == 0:
		return record{}, fmt.Errorf("annotation %s: no revision", taints.RecordAnnotation)
	}
	for condition, c := range r.Conditions {
		if c.Level == probes.Unknown || math.IsNaN(c.Penalty) || c.Penalty < 0 {
			return record{}, fmt.Errorf("annotation %s: impossible state of %s", taints.RecordAnnotation, cut(string(condition)))
		}
	}
	return r, nil
}

// maxTold is how much is told of a text that somebody else wrote, in bytes.
const maxTold = 200

// cut returns the start of a text that somebody else wrote.
func cut(text string) string {
	if len(text) <= maxTold {
		return text
	}
	return strings.ToValidUTF8(text[:maxTold], "") + "…"
}

// timeline turns the record's durations into times of the present process.
// After a reboot it is unknown how long the host was down. Every event counts
// as older by the time since the boot and no more, so that nothing is over too
// early, whatever the wall clock says.
func (r record) timeline(boot Boot) func(time.Duration) time.Time {
	if r.Boot == boot.ID {
		return boot.At.Add
	}
	return func(t time.Duration) time.Time { return boot.At.Add(t - r.At) }
}

// String writes the annotation.
func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil { // unreachable: no field of the record can fail
		return ""
	}
	return string(text)
}

// disputed are the levels that a rule, and so a dispute, can be about.
func disputed() []probes.Level { return []probes.Level{probes.Degraded, probes.Critical} }

// record returns what the next process has to know.
func (s *State) record(owned []taints.Pair) record {
	r := record{
		Version:    recordVersion,
		Revision:   s.ledger.revision,
		Boot:       s.boot.ID,
		At:         s.ledger.decidedAt.Sub(s.boot.At),
		Time:       s.ledger.decidedTime,
		Instance:   s.active.instance,
		EvictedAt:  s.boot.since(s.eviction.at),
		Owned:      owned,
		Conditions: make(map[probes.Condition]recordCondition, len(s.conditions)),
	}
	if !s.budget.fullAt.IsZero() {
		r.TokensAt = s.budget.fullAt.Sub(s.boot.At)
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		entry := recordCondition{Level: c.debounce.Level, Penalty: c.debounce.Penalty, SetAt: s.boot.since(c.debounce.SetAt), Reason: c.reason, recordTold: c.told.recorded()}
		for _, level := range disputed() {
			if d := *c.disputeOf(level); d != (dispute{}) {
				if entry.Dispute == nil {
					entry.Dispute = map[string]recordDispute{}
				}
				entry.Dispute[level.String()] = recordDispute{d.stage, s.boot.since(d.until), s.boot.since(d.lostAt)}
			}
		}
		r.Conditions[c.name] = entry
	}
	return r
}

// isRevisionDue reports whether the record has to remember something else than its
// last revision does. Until something was decided there is no record, and it need not
// say who is active.
func (s *State) isRevisionDue(t *turn) bool {
	l := &s.ledger
	for i := range s.conditions {
		if c := &s.conditions[i]; c.remembered() != c.recorded {
			return true
		}
	}
	d := &l.decided
	switch {
	case d.budget != s.budget || !slices.Equal(d.desired, l.desired):
		return true
	case l.revision == 0: // without a record, a restart would not know what is ours on the Node
		return len(l.owned) > 0 && t.in.Node.recordErr == nil && t.in.Node.record.Revision == 0
	}
	return d.uid != l.uid || d.instance != s.active.instance
}

// revise gives what was decided a new revision, and has the record say to people
// what the conditions say now.
func (s *State) revise(t *turn) {
	l := &s.ledger
	l.revise(t.now)
	l.decided = decision{l.uid, s.active.instance, s.budget, l.desired}
	for i := range s.conditions {
		c := &s.conditions[i]
		c.recorded, c.told = c.remembered(), c.tell(s.outlook(t, c), t.now)
	}
}

// since is a time as the record keeps it, nil for none.
func (b Boot) since(t time.Time) *time.Duration {
	if t.IsZero() {
		return nil
	}
	d := t.Sub(b.At)
	return &d
}

// restore takes over what the Node's record remembers. Evidence that was
// collected before is kept. The taints that stand stay until new evidence
// clears them.
func (s *State) restore(t *turn) {
	node := t.in.Node
	s.active.restored, s.ledger.uid = true, node.UID
	if node.recordErr != nil {
		if s.meet(t) {
			t.tell(Notice{Kind: RecordRefused, Reason: "UnreadableRecord", Message: node.recordErr.Error() + "; nothing is removed that cannot be proven to be taintlet's own"})
		}
		return
	}
	r := node.record
	at := r.timeline(s.boot)
	past := func(d *time.Duration) time.Time {
		if d == nil {
			return time.Time{}
		}
		return earlier(at(*d), t.now)
	}
	s.ledger.revision, s.ledger.decidedAt, s.ledger.decidedTime = r.Revision, at(r.At), r.Time
	if r.Revision > 0 {
		// So the record differs and is written anew, in the time of this boot: whoever
		// wrote it before has to learn that it is over.
		s.active.instance.Term = r.Instance.Term + 1
		s.budget = bucket{at(r.TokensAt)}.within(t.policy.WriteBudget, t.now)
	} else {
		s.budget = bucket{}
	}
	s.eviction.at = past(r.EvictedAt)
	for i := range s.conditions {
		c := &s.conditions[i]
		entry, found := r.Conditions[c.name]
		if !found {
			continue
		}
		c.debounce.Level, c.debounce.Penalty, c.debounce.SetAt = entry.Level, min(entry.Penalty, maxPenalty), past(entry.SetAt)
		c.debounce.forecast = false // what set it is not recorded: it clears like any other
		c.since = earlier(readWall(entry.Since), t.now)
		if entry.Level > probes.OK {
			c.reason = cut(entry.Reason)
		}
		if entry.Level == probes.Critical && !ownsCritical(t.policy, c.name, r.Owned) {
			c.debounce.Level = probes.Degraded // an eviction begins with a sample, an Event and a slot
		}
		for _, level := range disputed() {
			saved := entry.Dispute[level.String()]
			*c.disputeOf(level) = dispute{stage: min(saved.Stage, withdrawn), lostAt: past(saved.LostAt)}
			if saved.Until != nil {
				c.disputeOf(level).until = earlier(at(*saved.Until), t.now.Add(contestFor))
			}
		}
	}
}

// ownsCritical reports whether the taint of the condition's rule for Critical is
// among the pairs.
func ownsCritical(policy *Policy, name probes.Condition, owned []taints.Pair) bool {
	return slices.ContainsFunc(policy.Rules, func(r Rule) bool {
		return r.Condition == name && r.Level == probes.Critical && slices.Contains(owned, r.Taint.Pair())
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
