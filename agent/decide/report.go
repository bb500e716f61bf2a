package decide

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// report is what our Node conditions are to say.
type report struct {
	// due: the conditions are to be rendered anew.
	due bool
	// conditions are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	conditions []corev1.NodeCondition
}

// follow takes in that the conditions were written, and that a heartbeat is due.
func (r *report) follow(in Inputs) {
	if in.Written {
		r.conditions = nil
	}
	r.due = r.due || in.Refresh
}

// render renders the conditions when they are due and every probe has taken a
// sample.
func (r *report) render(t *turn, all conditions, unrecorded bool) {
	if !r.due || !all.allSeen() {
		return
	}
	r.due, r.conditions = false, make([]corev1.NodeCondition, 0, len(all))
	for i := range all {
		shown := all[i].render(t)
		if unrecorded {
			shown.Message += "; taintlet's record does not fit beside the Node's other annotations, so a restart would forget its taints and damping"
		}
		r.conditions = append(r.conditions, shown)
	}
}

// conditionPrefix makes our condition types of the conditions' names.
const conditionPrefix = "Host"

func typeOf(name probes.Condition) corev1.NodeConditionType {
	return corev1.NodeConditionType(conditionPrefix + string(name))
}

// isOurs reports whether a Node condition's type is one of taintlet's.
func isOurs(kind corev1.NodeConditionType, cfg *config.Config) bool {
	name, found := strings.CutPrefix(string(kind), conditionPrefix)
	return found && slices.ContainsFunc(cfg.Conditions, func(c config.Condition) bool { return string(c.Name) == name })
}

// render makes the Node condition.
func (c *condition) render(t *turn) corev1.NodeCondition {
	shown := corev1.NodeCondition{Type: typeOf(c.name), Status: corev1.ConditionFalse, Reason: c.last.Reason, Message: c.last.Message}
	blind := c.debounce.seenAt.IsZero() || c.debounce.unknownFor(t.now) >= t.debounce(c.name).UnknownAfter.Duration
	switch {
	case c.debounce.Level > probes.OK:
		shown.Status = corev1.ConditionTrue
		if classOf(c.last) < bad && c.because.Level > probes.OK {
			shown.Reason = c.because.Reason
			shown.Message = c.because.Message + c.nowText()
		}
	case blind:
		shown.Status = corev1.ConditionUnknown
	}
	return shown
}
