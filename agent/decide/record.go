package decide

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// recordVersion is the version of the record that this release writes. A newer
// one on a Node makes the agent read-only: it may not undo what it does not
// understand.
const recordVersion = 1

// maxRecord is the longest record that is read, in bytes. This release writes about 2 KiB; a client
// that may write annotations may write 256 KiB.
const maxRecord = 16 << 10

var errNewer = errors.New("the record was written by a newer release")

// Boot is one boot of the host and when it began, on the same clock that Step is given. Times in
// the record are durations since boot: CLOCK_BOOTTIME continues through suspend, and steps of the
// wall clock do not change it.
type Boot struct {
	ID string
	At time.Time
}

// since is a time as the record keeps it; 0: none. A time that is the boot's is kept as 1 ns later:
// after a reboot, events of the newest record count from the boot (times).
func (b Boot) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return cmp.Or(t.Sub(b.At), 1)
}

// Record is the annotation taintlet.dev/record: all that must survive the process, and the source
// of kubectl taintlet status. Fields that this release does not know are skipped. Every client that
// may write the annotation may forge it.
type Record struct {
	Version int `json:"version"`
	// Revision grows with every decision that is written. It distinguishes a Node that lacks the
	// last decision from one on which that was undone.
	Revision uint64 `json:"revision"`
	// Boot and At are the time of the decision, in nanoseconds since the boot with that ID. Time is
	// the same moment by the wall clock, which no decision uses.
	Boot string        `json:"boot"`
	At   time.Duration `json:"at"`
	Time wallTime      `json:"time,omitzero"`
	// Instance is the agent that wrote the record.
	Instance instance `json:"instance"`
	// Config is the hash of the configuration in force.
	Config string `json:"config,omitempty"`
	// Owned are the pairs on the Node that are ours.
	Owned []taints.Pair `json:"owned,omitempty"`
	memory
	Conditions map[probes.Condition]RecordCondition `json:"conditions"`
}

// memory is what the record has to remember of the Node: it is written when that changes.
type memory struct {
	// Freed is the UID of the Node object whose start-up taint was removed.
	Freed string `json:"freed,omitempty"`
	// TokensAt is when the bucket Policy.Upkeep is full again.
	TokensAt time.Duration `json:"tokensAt,omitempty"`
	// EvictedAt is when a NoExecute taint was last decided.
	EvictedAt time.Duration `json:"evictedAt,omitempty"`
	// Keep says that the admission policy fails.
	Keep recordKeep `json:"keep,omitzero"`
	// RepairEndedAt is when the host most recently no longer needed a repair.
	RepairEndedAt time.Duration `json:"repairEndedAt,omitempty"`
}

func (s *State) memory() memory {
	since := s.boot.since
	return memory{s.startup.freed, since(s.upkeep.fullAt), since(s.eviction.at), recordKeep{s.keep.lost, s.keep.version, since(s.keep.until)}, since(s.repairEndedAt)}
}

// instance is one run of the agent.
type instance struct {
	Name string `json:"name"`
}

// RecordCondition is the part of a Record for one condition. It is written when the level or
// anything else that is decided by changes. The summary and the times of losses change with that,
// or may wait.
type RecordCondition struct {
	Level   probes.Level  `json:"level"`
	Penalty float64       `json:"penalty,omitempty"`
	SetAt   time.Duration `json:"setAt,omitempty"`
	Reason  string        `json:"reason,omitempty"` // of the sample that set it
	Ruled   string        `json:"ruled,omitempty"`  // other reasons since then
	// TokensAt is when the condition's bucket is full again.
	TokensAt time.Duration `json:"tokensAt,omitempty"`
	Dispute  struct {
		OK       recordDispute `json:",omitzero"`
		Degraded recordDispute `json:",omitzero"`
		Critical recordDispute `json:",omitzero"`
	} `json:"dispute,omitzero"`
	summary
}

// entry is what the record has to remember of the condition now.
func (c *condition) entry(boot Boot) RecordCondition {
	entry := RecordCondition{
		Level: c.debounce.Level, Penalty: c.debounce.Penalty, SetAt: boot.since(c.debounce.SetAt), Reason: c.reason(), Ruled: c.ruled,
		TokensAt: boot.since(c.budget.fullAt),
	}
	for i, saved := range entry.disputes() {
		*saved = recordDispute{c.disputes[i].conceded, boot.since(c.disputes[i].lostAt)}
	}
	return entry
}

// disputes are those of its rules before Degraded, for Degraded and for Critical.
func (c *RecordCondition) disputes() [3]*recordDispute {
	return [...]*recordDispute{&c.Dispute.OK, &c.Dispute.Degraded, &c.Dispute.Critical}
}

// remembers reports whether the entry has all that another one has to remember.
func (c RecordCondition) remembers(other RecordCondition) bool {
	c.summary = other.summary
	for i, saved := range c.disputes() {
		saved.LostAt = other.disputes()[i].LostAt
	}
	return c == other
}

// IsDisputed reports whether taintlet does not set a taint of the condition, because another client
// removed it.
func (c RecordCondition) IsDisputed() bool {
	all := c.disputes()
	return slices.ContainsFunc(all[:], func(d *recordDispute) bool { return dispute{conceded: d.Stage}.isContested() })
}

type recordDispute struct {
	Stage  concession    `json:"stage,omitempty"`
	LostAt time.Duration `json:"lostAt,omitempty"`
}

type recordKeep struct {
	Lost    taints.Pair   `json:"lost"`
	Version string        `json:"version"`
	Until   time.Duration `json:"until"`
}

// parseRecord reads the annotation. An absent one is an empty record.
func parseRecord(text string) (Record, error) {
	switch {
	case text == "":
		return Record{}, nil
	case len(text) > maxRecord:
		return Record{}, fmt.Errorf("annotation %s: %d bytes, more than %d", taints.RecordAnnotation, len(text), maxRecord)
	}
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		var v struct{ Version int }
		if json.Unmarshal([]byte(text), &v) == nil && v.Version > recordVersion {
			return Record{}, errNewer
		}
		return Record{}, fmt.Errorf("annotation %s: %s", taints.RecordAnnotation, describe.Cut(err.Error()))
	}
	switch {
	case r.Version > recordVersion:
		return Record{}, errNewer
	case r.Version != recordVersion:
		return Record{}, fmt.Errorf("annotation %s: version %d is not %d", taints.RecordAnnotation, r.Version, recordVersion)
	case r.Revision == 0:
		return Record{}, fmt.Errorf("annotation %s: no revision", taints.RecordAnnotation)
	}
	for condition, c := range r.Conditions {
		if c.Level == probes.Unknown || math.IsNaN(c.Penalty) || c.Penalty < 0 {
			return Record{}, fmt.Errorf("annotation %s: impossible state of %s", taints.RecordAnnotation, describe.Cut(string(condition)))
		}
		c.HeldBy, c.Flaps, c.Removals, c.RemovedBy = describe.Hold(describe.Cut(string(c.HeldBy))), max(0, c.Flaps), max(0, c.Removals), describe.Cut(c.RemovedBy)
		r.Conditions[condition] = c
	}
	return r, nil
}

// isPossible reports whether the node-lifecycle-controller removes such a taint: a record may be forged.
func (r recordKeep) isPossible() bool {
	_, isReconciled := taints.LifecycleCondition(r.Lost)
	return isReconciled
}

// times returns what turns the durations of the record into times of the present process; zero is
// none. After a reboot it is unknown how long the host was down. Every event counts as older by the
// time since the boot and no more, so that nothing is over too early. The wall clock does not count.
func (r *Record) times(boot Boot) func(time.Duration) time.Time {
	begin := boot.At
	if r.Boot != boot.ID {
		begin = begin.Add(-r.At)
	}
	return func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return begin.Add(d)
	}
}

// String writes the annotation.
func (r Record) String() string {
	text, _ := json.Marshal(r) // no field of the record can fail
	return string(text)
}

// maxPenalty is all that damping needs: a second doubled so often is longer
// than any maxClearAfter. A forged record must not damp for weeks.
const maxPenalty = 32

// record returns what the next process has to know.
func (s *State) record(owned []taints.Pair) Record {
	r := Record{
		Version:    recordVersion,
		Revision:   s.ledger.revision,
		Boot:       s.boot.ID,
		At:         s.ledger.decidedAt.Sub(s.boot.At),
		Time:       wall(s.ledger.decidedAt),
		Instance:   instance{s.active.name},
		Config:     s.ledger.policy.Hash,
		Owned:      owned,
		memory:     s.memory(),
		Conditions: make(map[probes.Condition]RecordCondition, len(s.conditions)),
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		entry := c.entry(s.boot) // with a loss since the revision: the taint is set again with this write
		entry.summary = c.recorded.summary
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
		if c := &s.conditions[i]; !c.recorded.remembers(c.entry(s.boot)) {
			return true
		}
	}
	switch {
	case l.isChanged || l.decided != s.memory():
		return true
	case l.revision == 0: // without a record, a restart would not know what is ours on the Node
		return len(l.owned) > 0 && t.in.Node.recordErr == nil && t.in.Node.record.Revision == 0
	}
	return !l.isOurs
}

// revise gives what was decided a new revision, to be told from all before, and has the record say
// to people what the conditions say now.
func (s *State) revise(t *turn) {
	l := &s.ledger
	l.revision, l.decidedAt = max(1, l.revision+1), t.now // 0 is none
	l.decided, l.isChanged, l.isOurs = s.memory(), false, true
	for i := range s.conditions {
		c := &s.conditions[i]
		c.recorded = c.entry(s.boot)
		c.recorded.summary = s.summarize(t, c)
	}
}

// restore takes over what the Node's record remembers. Evidence that was
// collected before is kept. The taints that stand stay until new evidence
// clears them.
func (s *State) restore(t *turn) {
	node := t.in.Node
	s.active.restored, s.ledger.uid, s.startup = true, node.UID, startup{}
	s.restoreRepair(t)
	if node.recordErr != nil {
		s.observeNode(t)
		t.notify(Notice{Kind: RecordRefused, Reason: "UnreadableRecord", Message: describe.RecordUnreadable(node.recordErr)})
		return
	}
	r := node.record
	s.active.source = r.Revision
	at := r.times(s.boot)
	past := func(d time.Duration) time.Time { return earlier(at(d), t.now) }
	if r.Freed == node.UID {
		s.startup = startup{freed: r.Freed, isGone: true} // one patch wrote both
	}
	s.ledger.revision, s.ledger.decidedAt = r.Revision, at(r.At)
	s.upkeep = bucket{at(r.TokensAt)}.within(t.policy.Upkeep, t.now)
	s.eviction.at = past(r.EvictedAt)
	s.keep = keepFailure{}
	if r.Keep.isPossible() { // no forged failure lasts longer than a real one
		s.keep = keepFailure{r.Keep.Lost, r.Keep.Version, earlier(at(r.Keep.Until), t.now.Add(keepAgainAfter))}
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		entry, found := r.Conditions[c.name]
		if !found {
			continue
		}
		c.debounce.Level, c.debounce.Penalty, c.debounce.SetAt = entry.Level, min(entry.Penalty, maxPenalty), past(entry.SetAt)
		c.budget = bucket{at(entry.TokensAt)}.within(t.policy.WriteBudget, t.now)
		c.since = earlier(entry.Since.Time, t.now)
		c.removals = entry.removals(t.now)
		if entry.Level > probes.OK {
			if reason := describe.Cut(entry.Reason); c.decisive.Reason != reason {
				c.decisive = probes.Observation{Level: entry.Level, Reason: reason, Message: reason}
			}
			for reason := range strings.FieldsSeq(entry.Ruled) {
				c.addReason(t.policy, reason)
			}
		}
		rule, found := t.policy.rule(c.name, probes.Critical)
		if entry.Level == probes.Critical && (!found || !slices.Contains(r.Owned, rule.Taint.Pair())) {
			c.debounce.Level = probes.Degraded // an eviction begins with a sample, an Event and a slot
		}
		for i, saved := range entry.disputes() {
			c.disputes[i] = dispute{conceded: min(saved.Stage, acknowledged), lostAt: past(saved.LostAt)}
		}
	}
	s.ledger.land(node, s.active.name, t.in.NodeAt)
	s.restoreLatches(t)
}

// KeepFails says that the admission policy fails; empty: the agent did not notice that.
func (r *Record) KeepFails() string {
	if !r.Keep.isPossible() {
		return ""
	}
	return describe.KeepFails(r.Keep.Lost)
}

// ReadRecord reads a Node's record to show it, with the message of a condition that the fleet brake
// holds. The error says why it cannot be read; an absent record is empty.
func ReadRecord(node *taints.Node) (Record, error) {
	r, err := parseRecord(node.Annotations[taints.RecordAnnotation])
	if err != nil {
		return Record{}, err
	}
	for i := range node.Conditions { // the record does not say it: it comes and goes
		shown := &node.Conditions[i]
		name, isOurs := conditionName(shown.Type)
		if isOurs && shown.Reason == describe.ReasonBraked {
			c := r.Conditions[name]
			c.Level, c.HeldBy = max(c.Level, probes.OK), describe.HeldFleetBrake
			if r.Conditions == nil {
				r.Conditions = map[probes.Condition]RecordCondition{}
			}
			r.Conditions[name] = c
		}
	}
	return r, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// wallTime is a time for people, in seconds. A time that cannot be read is zero.
type wallTime struct{ time.Time }

func wall(t time.Time) wallTime { return wallTime{t.UTC().Truncate(time.Second)} }

// UnmarshalJSON reads the form of time.RFC3339.
func (w *wallTime) UnmarshalJSON(text []byte) error {
	if w.Time.UnmarshalJSON(text) != nil {
		w.Time = time.Time{}
	}
	return nil
}
