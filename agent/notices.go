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
		l.Log.Warn(n.Message, "taint", n.Taint.String(), "condition", string(n.Condition), "via", string(n.Via), "count", n.Count)
	case decide.Active, decide.Paused, decide.Resumed, decide.Observed, decide.Enforced, decide.StartupTaintRemoved, decide.TaintAcknowledged, decide.SoftTaintSet, decide.SoftTaintCleared:
		l.Log.Info(n.Message, "kind", string(n.Kind))
		l.event(corev1.EventTypeNormal, n.Reason, n.Message)
	default:
		l.Log.Warn(n.Message, "kind", string(n.Kind), "condition", string(n.Condition))
		l.event(corev1.EventTypeWarning, n.Reason, n.Message)
	}
}

// tellLevel reports a change of level by one line of the log and one Event, with the taint that comes
// or goes with it.
func (l *loop) tellLevel(n decide.Notice, before []decide.DesiredTaint) {
	e, now := levelEvent{corev1.EventTypeWarning, "Host" + string(n.Condition) + n.To.String(), n.Message}, l.state.DesiredTaints()
	if n.To == probes.OK {
		gone := slices.DeleteFunc(slices.Clone(before), func(d decide.DesiredTaint) bool { return slices.Contains(now, d) })
		e.kind, e.message = corev1.EventTypeNormal, e.message+taintsOf(n.Condition, "; removes taint ", gone)
		if stays := taintsOf(n.Condition, "; taint ", now); stays != "" {
			e.message += stays + " stays until an operator removes it"
		}
	} else {
		e.message += taintsOf(n.Condition, "; sets taint ", now)
		if why := l.state.WhyNoNewTaint(n.Condition); why != "" {
			e.message += "; " + why
		}
	}
	l.Log.Info("condition changed", "condition", string(n.Condition), "from", n.From.String(), "to", n.To.String(), "reason", n.Reason, "message", e.message)
	if n.To == probes.Critical && !l.state.IsObserved(n.Condition) { // announced before the taint is set
		l.levelEvents.wrote(n.Condition, l.Now())
		l.outbox.Announce(e.reason, e.message+"; pods that do not tolerate it are deleted now; this cannot be undone", l.Now())
		return
	}
	l.levelEvents.waiting[n.Condition] = e
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
