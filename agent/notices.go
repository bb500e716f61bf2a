package agent

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// tell logs a notice, counts it, and makes it an Event of the Node. before are
// the taints that were desired until then.
func (l *loop) tell(n decide.Notice, before []decide.DesiredTaint) {
	l.metrics.Noticed(n)
	switch n.Kind {
	case decide.LevelChanged:
		l.tellLevel(n, before)
	case decide.TaintLost: // what follows from it is worth an Event, not each loss
		l.Log.Warn(n.Message, append(taintAttrs(n.Taint), "condition", string(n.Condition), "via", string(n.Via), "count", n.Count)...)
	case decide.Active, decide.Paused, decide.Resumed, decide.Observed, decide.Enforced, decide.StartupTaintRemoved, decide.TaintAcknowledged, decide.SoftTaintSet, decide.SoftTaintCleared:
		l.Log.Info(n.Message, "kind", string(n.Kind))
		l.event(corev1.EventTypeNormal, n.Reason, n.Message)
	default:
		l.Log.Warn(n.Message, "kind", string(n.Kind), "condition", string(n.Condition))
		l.event(corev1.EventTypeWarning, n.Reason, n.Message)
	}
}

// tellLevel reports a change of level.
func (l *loop) tellLevel(n decide.Notice, before []decide.DesiredTaint) {
	l.logLevel(n, before)
	e := levelEvent{corev1.EventTypeWarning, "Host" + string(n.Condition) + n.To.String(), n.Message}
	if n.To == probes.OK {
		now := l.state.DesiredTaints()
		gone := slices.DeleteFunc(slices.Clone(before), func(d decide.DesiredTaint) bool { return slices.Contains(now, d) })
		e.kind, e.message = corev1.EventTypeNormal, e.message+taintsOf(n.Condition, "; removes taint ", gone)
		if stays := taintsOf(n.Condition, "; taint ", now); stays != "" {
			e.message += stays + " stays until an operator removes it"
		}
		l.levelEvents.add(n.Condition, e)
		return
	}
	e.message += taintsOf(n.Condition, "; sets taint ", l.state.DesiredTaints())
	if why := l.state.WhyNoNewTaint(n.Condition); why != "" {
		e.message += "; " + why
	}
	if n.To == probes.Critical && !l.state.IsObserved(n.Condition) { // announced before the taint is set
		l.levelEvents.wrote(n.Condition, l.Now())
		l.outbox.Announce(e.reason, e.message+"; pods that do not tolerate it are deleted now; this cannot be undone", l.Now())
		return
	}
	l.levelEvents.add(n.Condition, e)
}

// logLevel writes the one line of a change of level, with the taint that comes or
// goes with it.
func (l *loop) logLevel(n decide.Notice, before []decide.DesiredTaint) {
	level, all := n.To, l.state.DesiredTaints()
	if n.To < n.From {
		level, all = n.From, before
	}
	attrs := []any{
		"condition", string(n.Condition), "from", n.From.String(), "to", n.To.String(), "reason", n.Reason, "message", n.Message,
	}
	for _, placed := range all {
		isKept := n.To < n.From && slices.Contains(l.state.DesiredTaints(), placed) // somebody else removes it
		if placed.Condition == n.Condition && placed.Level == level && !isKept {
			attrs = append(attrs, taintAttrs(placed.Taint())...)
			attrs = append(attrs, "via", string(placed.Via))
		}
	}
	if c := n.Culprit; c.Kind != "" {
		attrs = append(attrs, "culprit", c.Who(), "took", c.TookText)
	}
	l.Log.Info("condition changed", attrs...)
}

// taintAttrs are a taint's attributes for the log.
func taintAttrs(t taints.Taint) []any {
	key := t.Key
	if t.Value != "" {
		key += "=" + t.Value
	}
	return []any{"taint", key, "effect", string(t.Effect)}
}

// taintsOf says which taints a condition has at its level, behind the prefix.
func taintsOf(c probes.Condition, prefix string, all []decide.DesiredTaint) string {
	var parts []string
	for _, placed := range all {
		if placed.Condition == c && !placed.IsSoft() {
			taint := placed.Taint()
			parts = append(parts, taint.String())
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return prefix + strings.Join(parts, ", ")
}

// tellWarning writes an Event for a good sample with a warning, such as a port that is closed
// between the hosts: no level changes, so nothing else would report it. There is one Event for each
// incident, which lasts until a sample without the warning.
func (l *loop) tellWarning(o probes.Observation) {
	switch {
	case o.Level != probes.OK:
	case !o.Warns && !o.Hysteresis:
		delete(l.warned, o.Condition)
	case o.Warns && !l.warned[o.Condition] && l.newest != nil:
		l.warned[o.Condition] = true
		l.Log.Warn(o.Message, "condition", string(o.Condition))
		l.event(corev1.EventTypeWarning, o.Reason, o.Message)
	}
}

// event writes an Event about the Node; without one there is nothing to write
// it about.
func (l *loop) event(kind, reason, message string) {
	if l.newest == nil {
		return
	}
	l.Recorder.Event(l.newest.Node, kind, reason, taints.Message(message))
}

// levelEventsEvery is the least time between two Events about the level of one
// condition. An Event before an eviction does not wait.
const levelEventsEvery = time.Minute

// levelEvents let one Event about the level of each condition pass in a minute. Of
// those that have to wait the newest passes, because it has the present level.
type levelEvents struct {
	last    map[probes.Condition]time.Time
	waiting map[probes.Condition]levelEvent
}

// levelEvent is an Event about the level of a condition.
type levelEvent struct{ kind, reason, message string }

func newLevelEvents() *levelEvents {
	return &levelEvents{last: map[probes.Condition]time.Time{}, waiting: map[probes.Condition]levelEvent{}}
}

// add has an Event wait for its turn.
func (e *levelEvents) add(c probes.Condition, event levelEvent) { e.waiting[c] = event }

// wrote notes that an Event about the level was written. An Event that waits is out of date.
func (e *levelEvents) wrote(c probes.Condition, now time.Time) {
	e.last[c] = now
	delete(e.waiting, c)
}

// pass writes the Events whose turn has come.
func (e *levelEvents) pass(now time.Time, write func(kind, reason, message string)) {
	for c, event := range e.waiting {
		if before, found := e.last[c]; found && now.Sub(before) < levelEventsEvery {
			continue
		}
		e.wrote(c, now)
		write(event.kind, event.reason, event.message)
	}
}
