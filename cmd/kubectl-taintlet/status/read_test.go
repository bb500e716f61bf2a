package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// A pause is shown before the agent has told it, for the conditions that it is for.
func TestPauseIsShownAtOnce(t *testing.T) {
	for value, want := range map[string]string{
		"true": "Paused", "DiskPressure, MemoryPressure": "Paused", "PIDPresure": "Paused", "DiskPressure": "", "false": "", "": "",
	} {
		node := recorded(t)["bad-memory"]
		node.Taints = nil
		node.Annotations[taints.PausedAnnotation] = value
		n := read(node, config.Default().Policy())
		if got := n.Conditions[0].HeldBy; got != want || n.State != Degraded {
			t.Errorf("paused %q: held back by %q, %s", value, got, n.State)
		}
		if isPaused := value != "" && value != "false"; (n.Paused != "") != isPaused {
			t.Errorf("paused %q is shown as %q", value, n.Paused)
		}
		if isMistyped := value == "PIDPresure"; (n.pause() == "Paused: all") != isMistyped || (n.mistypedPause == value) != isMistyped && value != "" {
			t.Errorf("paused %q: %s, mistyped %q", value, n.pause(), n.mistypedPause)
		}
	}
}

// Maintenance is shown as that, also before the agent has told it. What a person paused
// is shown as paused.
func TestMaintenanceIsShownAtOnce(t *testing.T) {
	for _, test := range []struct {
		kind, status, paused, held, maintenance, summary string
		cordoned                                         bool
	}{
		{"DrainInProgress", "True", "", "Maintenance", "DrainInProgress", "; 1 node under maintenance", false},
		{"MaintenanceInProgress", "True", "true", "Paused", "MaintenanceInProgress", "; 1 node paused; 1 node under maintenance", false},
		{"DrainInProgress", "False", "", "", "", "", false},
		{"Drained", "True", "", "Maintenance", "Drained", "; 1 node under maintenance", true},
		{"Drained", "True", "", "", "", "", false}, // it takes pods again
		{"MaintenancePlanned", "True", "", "", "", "", true},
	} {
		node := recorded(t)["bad-memory"]
		node.Taints, node.IsUnschedulable = nil, test.cordoned
		node.Annotations[taints.PausedAnnotation] = test.paused
		node.Conditions = append(node.Conditions, taints.NodeCondition{Type: test.kind, Status: taints.ConditionStatus(test.status)})
		n := read(node, config.Default().Policy())
		if n.Conditions[0].HeldBy != test.held || n.Maintenance != test.maintenance || strings.Contains(n.message(), test.kind) != (test.maintenance != "") {
			t.Errorf("%+v: held back by %q, maintenance %q: %s", test, n.Conditions[0].HeldBy, n.Maintenance, n.message())
		}
		s := Summary{States: map[State]int{}}
		if s.count(n, time.Now()); !strings.HasSuffix(fmt.Sprint(s), "without a taint"+test.summary) {
			t.Errorf("%+v: %s", test, s)
		}
	}
}

// owning returns a Node that is bad in memory, with these taints, which its record
// says are taintlet's.
func owning(t *testing.T, list ...taints.Taint) *taints.Node {
	t.Helper()
	node := recorded(t)["bad-memory"]
	node.Annotations[taints.HeldAnnotation] = ""
	node.Taints = list
	var names []string
	for _, taint := range list {
		names = append(names, `"`+taint.Pair().String()+`"`)
	}
	text := node.Annotations[taints.RecordAnnotation]
	before := `"owned":["node.kubernetes.io/memory-pressure:NoSchedule"]`
	if !strings.Contains(text, before) {
		t.Fatal(text)
	}
	node.Annotations[taints.RecordAnnotation] = strings.Replace(text, before, `"owned":[`+strings.Join(names, ",")+`]`, 1)
	return node
}

// A taint is shown with its value, at the condition that its key names, or at the only
// one that is bad.
func TestTaintsBelongToConditions(t *testing.T) {
	custom := taints.Taint{Key: "example.com/tired", Value: "yes", Effect: taints.NoExecute}
	standIn := taints.Taint{Key: "status-taint.example.com/memory-pressure", Effect: taints.NoSchedule}
	foreign := taints.Taint{Key: "dedicated", Effect: taints.NoSchedule}
	node := owning(t, custom, standIn)
	node.Taints = append(node.Taints, foreign)
	n := read(node, config.Default().Policy())
	got := joined(n.Conditions[0].Taints)
	if want := "example.com/tired=yes:NoExecute (direct), status-taint.example.com/memory-pressure:NoSchedule (stand-in)"; got != want || len(n.Others) != 0 {
		t.Errorf("taints %q and %v", got, n.Others)
	}
	for i := range node.Conditions {
		if c := &node.Conditions[i]; c.Type == "HostPIDPressure" {
			c.Status = taints.ConditionTrue
		}
	}
	if n = read(node, config.Default().Policy()); joined(n.Others) != "example.com/tired=yes:NoExecute (direct)" || len(n.Conditions[0].Taints) != 1 {
		t.Errorf("with two bad conditions: %v, %v", n.Others, n.Conditions[0].Taints)
	}
}

// A taint of taintlet's on a host that is healthy is shown: it has to go.
func TestTaintOfAHealthyCondition(t *testing.T) {
	node := owning(t, taints.Taint{Key: corev1.TaintNodeDiskPressure, Effect: taints.NoSchedule})
	for i := range node.Conditions {
		if strings.HasPrefix(node.Conditions[i].Type, "Host") {
			node.Conditions[i].Status = taints.ConditionFalse
		}
	}
	if n := read(node, config.Default().Policy()); n.State != Tainted || n.Conditions[1].isHealthy() {
		t.Errorf("%s %+v", n.State, n.Conditions)
	}
}

// HostRepairNeeded is a row while it is True, and never one of the
// conditions of others.
func TestRepairNeededIsShown(t *testing.T) {
	for status, want := range map[taints.ConditionStatus]bool{taints.ConditionTrue: true, taints.ConditionFalse: false} {
		node := recorded(t)["bad-memory"]
		node.Conditions = append(slices.DeleteFunc(node.Conditions, func(c taints.NodeCondition) bool { return c.Type == decide.RepairType }), taints.NodeCondition{
			Type: decide.RepairType, Status: status, Reason: "CutOff", Message: "CutOff since 03:05 UTC", LastTransitionTime: time.Unix(0, 0),
		})
		n := read(node, config.Default().Policy())
		n.asked = true
		text := strings.Join(Report{Nodes: []Node{n}, Time: time.Unix(60, 0)}.Lines(Format{}), "\n")
		if strings.Contains(text, "RepairNeeded") != want {
			t.Errorf("%s: it is in it: %t\n%s", status, !want, text)
		}
		if strings.Contains(text, "HostRepairNeeded") {
			t.Errorf("%s: a condition of others\n%s", status, text)
		}
	}
}

// An early taint is shown with the condition in its key, although that is OK.
func TestSoftTaintIsShownWithItsCondition(t *testing.T) {
	soft := taints.Taint{Key: "example.com/memory-pressure-early", Effect: taints.PreferNoSchedule}
	node := owning(t, soft)
	node.Condition("HostMemoryPressure").Status = taints.ConditionFalse
	n := read(node, config.Default().Policy())
	c := n.Conditions[0]
	if c.Name != "MemoryPressure" || len(c.Taints) != 1 || c.Taints[0].Taint != soft.String() || len(n.Others) != 0 || n.State != Tainted || n.Problem != "" {
		t.Errorf("%+v", n)
	}
}
