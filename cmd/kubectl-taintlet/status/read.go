package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// maxTaints bounds how many taints of a Node are shown.
const maxTaints = 16

// maxFlaps is what a forged record may claim.
const maxFlaps = 99

// Reader reads Nodes.
type Reader struct{ policy *decide.Policy }

// NewReader returns a Reader that knows the built-in conditions.
func NewReader() *Reader { return &Reader{config.Default().Policy()} }

// Read returns what a Node says. Its State is what it says of itself: whether the
// agent is silent is a question of the time.
func (r *Reader) Read(node *taints.Node) Node {
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
	remembered, err := decide.ReadStatus(node)
	if err != nil {
		n.Problem = "the record cannot be read: " + terminal.Clean(err.Error(), maxMessage)
	}
	n.Agent, n.Config = terminal.Clean(remembered.Agent, maxWord), terminal.Clean(remembered.Config, maxWord)
	n.keepFails, n.mistypedPause = remembered.KeepFails, r.mistypedPause(n.Paused)
	n.Foreign = r.foreign(node, remembered)
	if !decide.IsTouched(node, r.policy) {
		return n
	}
	if last := decide.LastSign(node, r.policy); !last.IsZero() {
		n.LastSign = &last
	}
	skew := skewOf(node, r.policy)
	n.ClockSkewSeconds = int64(skew / time.Second)
	for _, condition := range r.policy.Conditions {
		if c := node.Condition(decide.ConditionType(condition.Name)); c != nil {
			n.Conditions = append(n.Conditions, conditionOf(c, condition.Name, remembered, skew))
		}
	}
	n.Repair = repairOf(node)
	n.Maintenance = terminal.Clean(decide.MaintenanceOf(node, r.policy.Maintenance), maxWord)
	ours := r.ours(node, remembered)
	n.evicts = slices.ContainsFunc(ours, func(o owned) bool { return strings.HasSuffix(o.Taint.Taint, ":"+string(taints.NoExecute)) })
	n.specWrittenAt = node.SpecWrittenAt
	n.place(ours)
	for i := range n.Conditions {
		c := &n.Conditions[i]
		if c.HeldBy == "" && c.Level > probes.OK && len(c.Taints) == 0 { // the agent has not told it yet
			c.HeldBy = string(decide.PausedBy(node, r.policy, probes.Condition(c.Name)))
		}
		if past := remembered.Conditions[probes.Condition(c.Name)]; c.Level > probes.OK && past.Disputed {
			c.RemovedBy = terminal.Clean(cmp.Or(past.RemovedBy, "unknown"), maxWord)
		}
	}
	n.State = n.stateOfItself()
	return n
}

// mistypedPause is the first word of a pause that names no condition, so that the agent pauses
// all of them; empty: there is none.
func (r *Reader) mistypedPause(value string) string {
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		if _, isKnown := r.policy.Condition(probes.Condition(word)); !isKnown && value != "true" {
			return word
		}
	}
	return ""
}

// repairOf returns what the Node says of a repair of its host; nil: it needs none.
func repairOf(node *taints.Node) *Repair {
	c := node.Condition(decide.RepairType)
	if c == nil || c.Status != taints.ConditionTrue {
		return nil
	}
	return &Repair{terminal.Clean(c.Reason, maxWord), terminal.Clean(c.Message, maxMessage), c.LastTransitionTime.UTC()}
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
func conditionOf(c *taints.NodeCondition, name probes.Condition, remembered decide.Status, skew time.Duration) Condition {
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
			shown.ClearsAt = &past.ClearsAt
		}
	}
	shown.HeldBy = string(past.HeldBy)
	return shown
}

// owned is a taint of taintlet's on a Node, and the name of its condition; empty
// where the key does not tell.
type owned struct {
	Taint
	condition string
}

func isHeld(taint taints.Taint, held []string) bool {
	return slices.Contains(held, taint.Key) && taint.Effect == taints.NoSchedule
}

func isStandIn(taint taints.Taint) bool {
	return strings.HasPrefix(taint.Key, taints.DefaultStandInPrefix+"/")
}

func isOurs(taint taints.Taint, remembered decide.Status, held []string) bool {
	return slices.Contains(remembered.Owned, taint.Pair()) || isHeld(taint, held) || isStandIn(taint)
}

// maxForeign bounds how many conditions of others are shown.
const maxForeign = 32

// foreign returns what others wrote on the Node; nil: nothing.
func (r *Reader) foreign(node *taints.Node, remembered decide.Status) *Foreign {
	f := &Foreign{IsUnschedulable: node.IsUnschedulable}
	held := taints.HeldKeys(node)
	for _, taint := range node.Taints {
		if len(f.Taints) < maxTaints && !isOurs(taint, remembered, held) {
			f.Taints = append(f.Taints, terminal.Clean(taint.String(), maxTaint))
		}
	}
	ours := map[string]bool{decide.RepairType: true}
	for _, condition := range r.policy.Conditions {
		ours[decide.ConditionType(condition.Name)] = true
	}
	for _, c := range node.Conditions {
		if len(f.Conditions) < maxForeign && !ours[c.Type] {
			f.Conditions = append(f.Conditions, ForeignCondition{terminal.Clean(c.Type, maxWord), terminal.Clean(string(c.Status), maxWord), terminal.Clean(c.Reason, maxWord)})
		}
	}
	return f
}

// ours returns the Node's taints that the record says are taintlet's. Without a
// record that can be read it is the keys that tell.
func (r *Reader) ours(node *taints.Node, remembered decide.Status) []owned {
	var list []owned
	held := taints.HeldKeys(node)
	for _, taint := range node.Taints {
		pair := taint.Pair()
		if !isOurs(taint, remembered, held) {
			continue
		}
		if len(list) == maxTaints {
			break
		}
		o := owned{Taint{terminal.Clean(taint.String(), maxTaint), taints.Direct}, r.conditionNamed(taint.Key)}
		_, isReconciled := taints.LifecycleCondition(pair)
		switch name, isSoft := remembered.Soft[pair]; {
		case isSoft:
			o.condition = string(name)
		case isHeld(taint, held) && isReconciled:
			o.Via = taints.Kept
		case isStandIn(taint) || o.condition != "" && !isReconciled && taint.Effect == taints.NoSchedule:
			o.Via = taints.StandIn
		}
		list = append(list, o)
	}
	return list
}

// conditionNamed returns the condition whose key has the same name, under any prefix.
func (r *Reader) conditionNamed(key string) string {
	for _, condition := range r.policy.Conditions {
		_, name, _ := strings.Cut(condition.TaintKey, "/")
		if strings.HasSuffix(key, "/"+name) {
			return string(condition.Name)
		}
	}
	return ""
}

// place gives each condition its taints. A key that names no condition belongs to
// the only one that is degraded.
func (n *Node) place(list []owned) {
	var only *Condition
	bad := 0
	for i := range n.Conditions {
		if n.Conditions[i].Level > probes.OK {
			bad, only = bad+1, &n.Conditions[i]
		}
	}
	for _, o := range list {
		at := slices.IndexFunc(n.Conditions, func(c Condition) bool { return c.Name == o.condition })
		switch {
		case at >= 0:
			n.Conditions[at].Taints = append(n.Conditions[at].Taints, o.Taint)
		case o.condition == "" && bad == 1:
			only.Taints = append(only.Taints, o.Taint)
		default:
			n.Others = append(n.Others, o.Taint)
		}
	}
}

// stateOfItself is the State but for silence.
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
