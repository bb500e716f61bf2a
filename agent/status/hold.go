package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// The stages of a dispute in the record.
const (
	usesStandIn = 1
	isWithdrawn = 2
)

// heldByPause is what Condition.HeldBy says of a pause.
const heldByPause = "pause"

// hold says what keeps the condition's taint from being set, and who removed it.
func (c *Condition) hold(node *corev1.Node, remembered record, isPaused bool) {
	switch {
	case c.Reason == decide.ReasonBraked:
		c.HeldBy = "fleet brake"
	case isPaused && c.Level != levelOK && len(c.Taints) == 0:
		c.HeldBy = heldByPause
	}
	if !isBad(c.Level) {
		return
	}
	for _, level := range []probes.Level{probes.Degraded, probes.Critical} {
		d, found := remembered.Conditions[c.Name].Dispute[level.String()]
		if !found {
			continue
		}
		c.RemovedBy = remover(node, c)
		until := remembered.calendar(d.Until)
		switch {
		case d.Stage == isWithdrawn && until.IsZero():
			c.HeldBy = "veto until OK"
		case d.Stage == isWithdrawn:
			c.HeldBy = "contest until OK, and " + stamp(until)
		case d.Stage == usesStandIn:
			c.HeldBy = "contest until " + stamp(until)
		}
	}
}

// remover says who removed the condition's taint. The API server forgets that when
// taintlet writes the taints again, and when none is left.
func remover(node *corev1.Node, c *Condition) string {
	if by := taints.LastWriter(node); by != "" {
		return clean(by, maxWord)
	}
	if len(c.Taints) > 0 {
		return "see its Events"
	}
	return "somebody"
}

// stamp is a time for people, who may be far from the clock it is by.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
