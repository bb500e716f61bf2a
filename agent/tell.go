package agent

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// tell logs a notice, counts it, and makes it an Event of the Node. before are
// the taints that were wanted until then.
func (l *loop) tell(n decide.Notice, before []decide.Placed) {
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
	reason := "Host" + string(n.Condition) + n.To.String()
	if n.To == probes.OK {
		l.event(corev1.EventTypeNormal, reason, n.Message+taintsOf(n.Condition, "; no more taint ", before))
		return
	}
	l.event(corev1.EventTypeWarning, reason, n.Message+taintsOf(n.Condition, "; taint ", l.state.Placed()))
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
	l.Recorder.Event(&corev1.ObjectReference{
		Kind: "Node", APIVersion: "v1", Name: l.node.Name, UID: l.node.UID,
	}, kind, reason, message)
}
