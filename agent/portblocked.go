package agent

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network"
)

// tellPortBlocked writes an Event when the peers answer at their second port only:
// no level changes, and nobody else would say it. An incident lasts until a sample
// is good again, so there is one Event for each.
func (l *loop) tellPortBlocked(o probes.Observation) {
	if o.Condition != probes.NetworkUnavailable || o.Level != probes.OK {
		return
	}
	switch {
	case o.Reason == network.ReasonPortBlocked:
		if !l.portBlocked && l.node != nil {
			l.portBlocked = true
			l.Log.Warn(o.Message, "condition", string(o.Condition))
			l.event(corev1.EventTypeWarning, "PortBlocked", o.Message)
		}
	case !o.Hysteresis:
		l.portBlocked = false
	}
}
