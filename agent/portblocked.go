package agent

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network"
)

// tellPortBlocked writes an Event when taintlet's port is closed between the hosts: no
// level changes, and nobody else would say it. An incident lasts until a sample is
// good again, so there is one Event for each.
func (l *loop) tellPortBlocked(o probes.Observation) {
	if o.Condition != probes.NetworkUnavailable || o.Level != probes.OK {
		return
	}
	switch {
	case o.Reason == network.ReasonPortBlocked && l.isNewlyBlocked(o):
		l.event(corev1.EventTypeWarning, "PortBlocked", o.Message)
	case o.Reason == network.ReasonPeersNeverReached && l.isNewlyBlocked(o):
		l.event(corev1.EventTypeWarning, "PeersNeverReached", o.Message)
	case o.Reason == network.ReasonPortBlocked, o.Reason == network.ReasonPeersNeverReached:
	case !o.Hysteresis:
		l.portBlocked = false
	}
}

// isNewlyBlocked reports whether this is the first sample of an incident that can be
// told, and logs it then.
func (l *loop) isNewlyBlocked(o probes.Observation) bool {
	if l.portBlocked || l.node == nil {
		return false
	}
	l.portBlocked = true
	l.Log.Warn(o.Message, "condition", string(o.Condition))
	return true
}
