package decide

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// adopt takes what the Node's conditions say for told, where a restarted agent would
// only say the same again. So a restart costs one write, that of the record, and the
// heartbeat goes on from the time that stands there. As between two heartbeats, the
// value may be older than the newest sample. It reports whether it did.
func (s *State) adopt(t *turn) bool {
	if s.ledger.unrecorded {
		return false
	}
	oldest := t.now
	outlooks := make([]outlook, len(s.conditions))
	for i := range s.conditions {
		c := &s.conditions[i]
		if c.shown != nil { // told by this process: nearly always
			return false
		}
		stands := taints.Condition(t.in.Node.Node, ConditionType(c.name))
		outlooks[i] = s.outlook(t, c)
		if stands == nil || !c.isToldBy(stands, t, outlooks[i]) {
			return false
		}
		oldest = earlier(oldest, stands.LastHeartbeatTime.Time)
	}
	if t.now.Sub(oldest) >= t.policy.Heartbeat { // it is off, or due
		return false
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		c.shown = &rendered{outlooks[i], c.last.Severity, saidBy(c.last)}
	}
	t.Adopted = oldest
	return true
}

// isToldBy reports whether a Node condition says what would be written, but for the
// value, with which a message begins. A time in the future is none of this boot's.
func (c *condition) isToldBy(stands *corev1.NodeCondition, t *turn, o outlook) bool {
	next := c.render(t, o)
	rest := strings.TrimPrefix(next.Message, c.last.Message)
	return stands.Status == next.Status && stands.Reason == next.Reason && strings.HasSuffix(stands.Message, rest) &&
		!stands.LastHeartbeatTime.After(t.now.Add(time.Second))
}
