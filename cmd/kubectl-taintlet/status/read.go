package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// maxTaints and maxForeign bound how many taints of a Node, and conditions of other programs, are
// shown.
const maxTaints = 16

// maxFlaps is what a forged record may claim.
const maxFlaps = 99

// read returns what a Node says, with the conditions of a policy. Its State is what it says of
// itself: whether the agent is silent is a question of the time.
func read(node *taints.Node, policy *decide.Policy) Node {
	n := Node{
		Name: terminal.Clean(node.Name, maxName), State: NoAgent,
		Paused: terminal.Clean(node.Annotations[taints.PausedAnnotation], maxWord),
	}
	if n.Paused == "false" {
		n.Paused = ""
	}
	if ready := node.Condition("Ready"); ready != nil {
		n.Ready = terminal.Clean(string(ready.Status), maxWord)
	}
	remembered, err := decide.ReadRecord(node)
	if err != nil {
		n.Problem = "the record cannot be read: " + terminal.Clean(err.Error(), maxMessage)
	}
	n.Agent, n.Config = terminal.Clean(remembered.Instance.Name, maxWord), terminal.Clean(remembered.Config, maxWord)
	n.keepFails, n.mistypedPause = remembered.KeepFails(), mistypedPause(n.Paused, policy)
	skew := skewOf(node, policy)
	for _, condition := range policy.Conditions {
		if c := node.Condition(decide.ConditionType(condition.Name)); c != nil {
			n.Conditions = append(n.Conditions, conditionOf(c, condition.Name, remembered, skew))
		}
	}
	n.place(node, remembered, policy)
	n.readForeign(node, policy)
	if !decide.IsTouched(node, policy) {
		return n
	}
	if last := decide.LastSign(node, policy); !last.IsZero() {
		n.LastSign = &last
	}
	n.ClockSkewSeconds, n.specWrittenAt = int64(skew/time.Second), node.SpecWrittenAt
	n.Maintenance = terminal.Clean(decide.MaintenanceOf(node, policy.Maintenance), maxWord)
	n.hold(node, remembered, policy)
	n.State = n.stateOfItself()
	if c := node.Condition(decide.RepairType); c != nil && c.Status == taints.ConditionTrue {
		n.Conditions = append(n.Conditions, conditionOf(c, repairNeeded, remembered, skew))
	}
	return n
}

// hold says of each bad condition what holds its taint back, and who removed it.
func (n *Node) hold(node *taints.Node, remembered decide.Record, policy *decide.Policy) {
	for i := range n.Conditions {
		c := &n.Conditions[i]
		if c.HeldBy == "" && c.Level > probes.OK && len(c.Taints) == 0 { // the agent has not told it yet
			c.HeldBy = string(decide.PausedBy(node, policy, probes.Condition(c.Name)))
		}
		if past := remembered.Conditions[probes.Condition(c.Name)]; c.Level > probes.OK && past.IsDisputed() {
			c.RemovedBy = terminal.Clean(cmp.Or(past.RemovedBy, "unknown"), maxWord)
		}
	}
}

// mistypedPause is the first word of a pause that names no condition, so that the agent pauses
// all of them; empty: there is none.
func mistypedPause(value string, policy *decide.Policy) string {
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		if _, isKnown := policy.Condition(probes.Condition(word)); !isKnown && value != "true" {
			return word
		}
	}
	return ""
}

// skewOf is how far a host's clock is ahead of the API server's. An agent stamps its
// conditions by the one clock, and the API server notes the same write by the other.
func skewOf(node *taints.Node, policy *decide.Policy) time.Duration {
	noted, stamped := node.StatusWrittenAt, decide.LastHeartbeat(node, policy)
	if noted.IsZero() || stamped.IsZero() {
		return 0
	}
	return stamped.Sub(noted)
}

// conditionOf reads a condition of a host whose clock is ahead by skew.
func conditionOf(c *taints.NodeCondition, name probes.Condition, remembered decide.Record, skew time.Duration) Condition {
	shown := Condition{
		Name: string(name), Since: c.LastTransitionTime.UTC(),
		Reason: terminal.Clean(c.Reason, maxWord), Message: terminal.Clean(c.Message, maxMessage),
		ReportedAt: c.LastHeartbeatTime.Add(-skew).UTC(),
	}
	past := remembered.Conditions[name]
	shown.Flaps = min(past.Flaps, maxFlaps)
	switch c.Status {
	case taints.ConditionFalse:
		shown.Level = probes.OK
	case taints.ConditionTrue:
		shown.Level = max(probes.Degraded, past.Level)
		if past.Level > probes.OK && !past.Since.IsZero() {
			shown.Since = past.Since.UTC()
		}
		if !past.ClearsAt.IsZero() {
			shown.ClearsAt = &past.ClearsAt.Time
		}
	}
	shown.HeldBy = terminal.Clean(string(past.HeldBy), maxWord)
	return shown
}

const (
	maxForeign = 32
	// repairNeeded is the name of the condition HostRepairNeeded.
	repairNeeded = "RepairNeeded"
)

// readForeign reads the conditions that other programs report.
func (n *Node) readForeign(node *taints.Node, policy *decide.Policy) {
	ours := map[string]bool{decide.RepairType: true}
	for _, condition := range policy.Conditions {
		ours[decide.ConditionType(condition.Name)] = true
	}
	for _, c := range node.Conditions {
		if len(n.ForeignConditions) < maxForeign && !ours[c.Type] {
			text := fmt.Sprintf("%.*s %.*s", maxWord, c.Type, maxWord, c.Status)
			if c.Reason != "" {
				text += fmt.Sprintf(" (%.*s)", maxWord, c.Reason)
			}
			n.ForeignConditions = append(n.ForeignConditions, terminal.Clean(text, 4*maxWord))
		}
	}
}

// viaOf returns how a taint of taintlet stays on the Node, and the name of its condition, which is
// empty if the key does not contain it: a rule gives the key, or it has the name of a well-known one.
func viaOf(taint taints.Taint, isHeld bool, policy *decide.Policy) (via taints.Via, name string) {
	via = taints.Direct
	base := strings.TrimSuffix(taint.Key[strings.LastIndexByte(taint.Key, '/')+1:], taints.EarlySuffix)
	for _, c := range policy.Conditions {
		if !strings.HasSuffix(c.TaintKey, "/"+base) {
			continue
		}
		name = string(c.Name)
		if isHeld && taint.Key == c.TaintKey {
			via = taints.Kept
		} else if taint.Key != c.TaintKey && taint.Effect == taints.NoSchedule {
			via = taints.StandIn
		}
	}
	for _, rule := range policy.Rules {
		if rule.Taint.Key == taint.Key {
			name = string(rule.Condition)
		}
		if rule.Taint.Pair() == taint.Pair() && via == taints.StandIn {
			via = taints.Direct
		}
	}
	return via, name
}

// place assigns taintlet's taints, as listed in the record, to their conditions. Without a readable
// record the keys decide. A key that does not name a condition belongs to the only degraded one.
func (n *Node) place(node *taints.Node, remembered decide.Record, policy *decide.Policy) {
	if node.IsUnschedulable {
		n.ForeignTaints = append(n.ForeignTaints, "cordoned")
	}
	var bad []int
	for i, c := range n.Conditions {
		if c.Level > probes.OK {
			bad = append(bad, i)
		}
	}
	held, count := taints.HeldKeys(node), 0
	for _, taint := range node.Taints {
		text := terminal.Clean(taint.String(), maxTaint)
		isHeld := slices.Contains(held, taint.Key) && taint.Effect == taints.NoSchedule
		if isOurs := isHeld || slices.Contains(remembered.Owned, taint.Pair()) || strings.HasPrefix(taint.Key, taints.DefaultStandInPrefix+"/"); !isOurs {
			if len(n.ForeignTaints) < maxTaints {
				n.ForeignTaints = append(n.ForeignTaints, text)
			}
			continue
		}
		if count++; count > maxTaints {
			continue
		}
		n.evicts = n.evicts || taint.Effect == taints.NoExecute
		via, name := viaOf(taint, isHeld, policy)
		at := slices.IndexFunc(n.Conditions, func(c Condition) bool { return c.Name == name })
		if name == "" && len(bad) == 1 {
			at = bad[0]
		}
		to := &n.Others
		if at >= 0 {
			to = &n.Conditions[at].Taints
		}
		*to = append(*to, Taint{text, via})
	}
}

func (n *Node) stateOfItself() State {
	var isTainted, anyBad, anyUnknown bool
	for _, c := range n.Conditions {
		isTainted = isTainted || len(c.Taints) > 0
		anyBad = anyBad || c.Level > probes.OK
		anyUnknown = anyUnknown || c.Level == probes.Unknown
	}
	switch {
	case isTainted, len(n.Others) > 0:
		return Tainted
	case anyBad:
		return Degraded
	case anyUnknown, n.Problem != "":
		return Unknown
	}
	return Healthy
}
