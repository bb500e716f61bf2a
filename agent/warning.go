package agent

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
)

// tellWarning writes an Event for a sample that is good and warns all the same, such as
// of a port that is closed between the hosts: no level changes, and nobody else would
// say it. An incident lasts until a sample is good again, so there is one Event for each.
func (l *loop) tellWarning(o probes.Observation) {
	switch {
	case o.Level != probes.OK:
	case !o.Warns && !o.Hysteresis:
		delete(l.warned, o.Condition)
	case o.Warns && !l.warned[o.Condition] && l.node != nil:
		l.warned[o.Condition] = true
		l.Log.Warn(o.Message, "condition", string(o.Condition))
		l.event(corev1.EventTypeWarning, o.Reason, o.Message)
	}
}
