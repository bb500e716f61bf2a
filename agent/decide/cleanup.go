package decide

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Cleanup returns the change that takes everything of taintlet's off a Node
// that no agent looks after any more: taints, record, held annotation,
// conditions. A taint that the kubelet's own condition asks for is left to the
// lifecycle controller. stays are pairs that the record names but that may not
// be removed, because neither this configuration nor a built-in rule can
// produce them; while there are any, the record stays too. So does the
// annotation taintlet.dev/paused: a person put it there. A record that cannot
// be read is an error: what it names would be forgotten.
func Cleanup(cfg *config.Config, facts taints.Facts, node *corev1.Node) (change taints.Change, stays []taints.Pair, err error) {
	read := Read(node)
	if read.recordErr != nil {
		return change, nil, read.recordErr
	}
	s := New(Boot{}, "", time.Time{})
	s.facts, s.owned = facts, read.record.Owned
	change.Owned = s.mayRemove(cfg, read)
	stays = s.unasked(cfg, read, s.owned)
	change.Annotations = map[string]string{taints.HeldAnnotation: ""}
	if len(stays) == 0 {
		change.Annotations[taints.RecordAnnotation] = ""
	}
	for _, condition := range probes.Conditions() {
		change.Gone = append(change.Gone, corev1.NodeConditionType(conditionPrefix+string(condition)))
	}
	return change, stays, nil
}

// IsTouched reports whether a Node carries anything of taintlet's that a
// cleanup would take off.
func IsTouched(node *corev1.Node) bool {
	for _, key := range []string{taints.RecordAnnotation, taints.HeldAnnotation} {
		if _, found := node.Annotations[key]; found {
			return true
		}
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return isOurs(c.Type) })
}

// LastSign is when taintlet last wrote the Node, by the clock of the host that
// wrote: its newest heartbeat or decision. Zero when that cannot be told.
func LastSign(node *corev1.Node) time.Time {
	read := Read(node)
	last := signOfLifeOn(read).heartbeat
	if decided, err := time.Parse(time.RFC3339, read.record.Time); err == nil && decided.After(last) {
		last = decided
	}
	return last
}

// isOurs reports whether a condition type is one of taintlet's.
func isOurs(kind corev1.NodeConditionType) bool {
	name, found := strings.CutPrefix(string(kind), conditionPrefix)
	return found && slices.Contains(probes.Conditions(), probes.Condition(name))
}
