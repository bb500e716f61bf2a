package agent

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// tell logs a notice, counts it, and makes it an Event of the Node.
func (l *loop) tell(n decide.Notice) {
	l.metrics.notice(n)
	if n.Kind != decide.LevelChanged {
		l.Log.Warn(n.Message, "kind", string(n.Kind), "condition", string(n.Condition))
		l.event(corev1.EventTypeWarning, n.Reason, n.Message)
		if n.Kind == decide.TaintContested || n.Kind == decide.TaintWithdrawn {
			select {
			case l.askPolicy <- struct{}{}:
			default: // asked already
			}
		}
		return
	}
	l.Log.Info("condition changed", "condition", string(n.Condition),
		"from", n.From.String(), "to", n.To.String(), "reason", n.Reason, "message", n.Message)
	kind := corev1.EventTypeWarning
	if n.To == probes.OK {
		kind = corev1.EventTypeNormal
	}
	l.event(kind, "Host"+string(n.Condition)+n.To.String(), n.Message+l.taintsOf(n.Condition))
}

// taintsOf says which taints a condition has on the Node now.
func (l *loop) taintsOf(c probes.Condition) string {
	var parts []string
	for _, placed := range l.state.Placed() {
		if placed.Condition == c {
			parts = append(parts, fmt.Sprintf("%s (%s)", placed.Pair, placed.Via))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; taint " + strings.Join(parts, ", ")
}

// event writes an Event about the Node; without one there is nothing to write
// it about.
func (l *loop) event(kind, reason, message string) {
	if l.node == nil {
		return
	}
	l.Recorder.Event(&corev1.ObjectReference{
		Kind: "Node", APIVersion: "v1", Name: l.node.Name, UID: l.node.UID,
	}, kind, reason, message)
}
