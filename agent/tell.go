package agent

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// tell logs a notice, counts it, and makes it an Event of the Node. before are
// the taints that were desired until then.
func (l *loop) tell(n decide.Notice, before []decide.Placed) {
	l.metrics.notice(n)
	switch n.Kind {
	case decide.LevelChanged:
	case decide.TaintLost: // what follows from it is worth an Event, not each loss
		l.Log.Warn(n.Message, "condition", string(n.Condition), "via", string(n.Via))
		return
	case decide.Active, decide.Paused, decide.Resumed:
		l.Log.Info(n.Message, "kind", string(n.Kind))
		l.event(corev1.EventTypeNormal, n.Reason, n.Message)
		return
	default:
		l.Log.Warn(n.Message, "kind", string(n.Kind), "condition", string(n.Condition))
		l.event(corev1.EventTypeWarning, n.Reason, n.Message)
		return
	}
	l.Log.Info("condition changed", "condition", string(n.Condition),
		"from", n.From.String(), "to", n.To.String(), "reason", n.Reason, "message", n.Message)
	reason := "Host" + string(n.Condition) + n.To.String()
	if n.To == probes.OK {
		l.event(corev1.EventTypeNormal, reason, n.Message+taintsOf(n.Condition, "; no more taint ", before))
		return
	}
	message := n.Message + taintsOf(n.Condition, "; taint ", l.state.Placed())
	if l.state.IsPaused(n.Condition) {
		message += "; no new taint while the annotation " + taints.PausedAnnotation + " is there"
	}
	if n.To == probes.Critical { // told before the taint is set
		l.outbox.announce(announcement{reason, message + "; pods that do not tolerate it are deleted now", l.Now()})
		return
	}
	l.event(corev1.EventTypeWarning, reason, message)
}

// taintsOf says which taints a condition has, behind the prefix.
func taintsOf(c probes.Condition, prefix string, all []decide.Placed) string {
	var parts []string
	for _, placed := range all {
		if placed.Condition == c {
			parts = append(parts, fmt.Sprintf("%s (%s)", placed.Pair, placed.Via))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return prefix + strings.Join(parts, ", ")
}

// event writes an Event about the Node; without one there is nothing to write
// it about.
func (l *loop) event(kind, reason, message string) {
	if l.node == nil {
		return
	}
	about := taints.Reference(l.node.Node)
	l.Recorder.Event(&about, kind, reason, taints.Message(message))
}
