package status

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/taints"
)

// generated are Nodes as agents leave them; each tenth is bad.
func generated(t testing.TB, count int) []*taints.Node {
	t.Helper()
	fixtures := recorded(t)
	nodes := make([]*taints.Node, count)
	for i := range nodes {
		from := fixtures["well"]
		if i%10 == 0 {
			from = fixtures["bad-memory"]
		}
		nodes[i] = from.Clone()
		nodes[i].Name = fmt.Sprintf("node-%04d", i)
	}
	return nodes
}

// An agent is silent after two and a half heartbeats of its configuration.
func TestSilenceIsOfHeartbeats(t *testing.T) {
	for heartbeat, want := range map[string]State{"1m": Silent, "5m": Tainted, "0s": Tainted} {
		i := installed(t, recordedAt(recorded(t)))
		i.Config = new(*i.Config + "heartbeat: " + heartbeat + "\n")
		fleet := NewFleet(Options{})
		fleet.Add(recorded(t)["bad-memory"])
		fleet.SetInstallation(i)
		if got := fleet.Report(recordedAt(recorded(t)).Add(3 * time.Minute)).Nodes[0].State; got != want {
			t.Errorf("heartbeat %s: %s, want %s", heartbeat, got, want)
		}
	}
}

// Each Node has one State, and they add up.
func TestSummaryAddsUp(t *testing.T) {
	fleet := NewFleet(Options{})
	now := recordedAt(recorded(t))
	for _, node := range generated(t, 200) {
		fleet.Add(node)
	}
	for _, node := range recorded(t) {
		fleet.Add(node)
	}
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		s := fleet.Report(at).Summary
		if s.States[Healthy]+s.States[Tainted]+s.States[Degraded]+s.States[Unknown]+s.States[Silent]+s.States[Down] != s.Agents || s.Agents+1 != s.Nodes || s.States[NoAgent] != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// A Node whose agent's clock is wrong is not silent: the API server's clock tells.
func TestSilenceIsTheAPIServersToTell(t *testing.T) {
	node := recorded(t)["well"]
	now := recordedAt(recorded(t))
	for i := range node.Conditions {
		node.Conditions[i].LastHeartbeatTime = now.Add(-24 * time.Hour)
	}
	fleet := NewFleet(Options{})
	fleet.Add(node)
	if s := fleet.Report(now).Summary; s.States[Healthy] != 1 {
		t.Errorf("%+v", s)
	}
	node.SpecWrittenAt, node.StatusWrittenAt = time.Time{}, time.Time{} // then its own clock does
	node.Annotations = nil
	fleet.Add(node)
	if s := fleet.Report(now).Summary; s.States[Silent] != 1 || s.String() != "1 agent, 0 healthy, 1 silent for 24 h" {
		t.Errorf("%+v", s)
	}
}

// A fleet of 5,000 Nodes is kept in little memory: rows, and no Nodes.
func TestMemoryOfALargeFleet(t *testing.T) {
	fixtures := generated(t, 10)
	fleet := NewFleet(Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 5000 {
		node := fixtures[i%10].Clone()
		node.Name = fmt.Sprintf("node-%04d", i)
		fleet.Add(node)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int(after.HeapAlloc) - int(before.HeapAlloc)
	t.Logf("%d KiB", kept>>10)
	if kept > 3<<20 {
		t.Errorf("5,000 Nodes keep %d KiB", kept>>10)
	}
	runtime.KeepAlive(fleet)
}

// A Node keeps its eviction slot for the cooldown after the write that removed its NoExecute
// taint, and the line of the slots says until when. One that evicts has no end to tell.
func TestCooldownOfASlot(t *testing.T) {
	now := recordedAt(recorded(t))
	for name, test := range map[string]struct {
		effect taints.Effect
		wrote  time.Time
		want   string
	}{
		"evicts":         {taints.NoExecute, now, "bad-memory holds taintlet-evict-0, renewed 15 s ago"},
		"evicts no more": {taints.NoSchedule, now.Add(-4 * time.Minute), "bad-memory holds taintlet-evict-0, cooldown until " + now.Add(6*time.Minute).UTC().Format("15:04") + " UTC"},
		"is to give up":  {taints.NoSchedule, now.Add(-11 * time.Minute), "bad-memory holds taintlet-evict-0, renewed 15 s ago"},
	} {
		node := recorded(t)["bad-memory"]
		node.SpecWrittenAt, node.Taints[0].Effect = test.wrote, test.effect
		node.Annotations[taints.RecordAnnotation] = strings.ReplaceAll(node.Annotations[taints.RecordAnnotation], "NoSchedule", string(test.effect))
		fleet := NewFleet(Options{})
		fleet.Add(node)
		fleet.SetInstallation(installed(t, now))
		if lines := fleet.Report(now).Installed; !strings.HasSuffix(lines[len(lines)-1], test.want) {
			t.Errorf("%s: %s", name, lines)
		}
	}
}

// A condition that others report, and that the configuration of the agents names, is a condition
// of the Node like taintlet's own: its taint belongs to it, and a pause may name it.
func TestConditionsOfOthersAreShown(t *testing.T) {
	now := recordedAt(recorded(t))
	node := owning(t, taints.Taint{Key: "example.com/deadlock", Effect: taints.NoSchedule})
	node.Annotations[taints.PausedAnnotation] = "KernelDeadlock"
	node.Conditions = append(node.Conditions, taints.NodeCondition{Type: "HostKernelDeadlock", Status: taints.ConditionTrue, Reason: "DockerHung", LastTransitionTime: now, LastHeartbeatTime: now})
	i := installed(t, now)
	i.Config = new("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nconditions: [{type: KernelDeadlock}]\n" +
		"rules: [{condition: KernelDeadlock, level: Degraded, taint: {key: example.com/deadlock, effect: NoSchedule}}]\n")
	fleet := NewFleet(Options{})
	fleet.SetInstallation(i)
	fleet.Add(node)
	report := fleet.Report(now)
	var got []string
	for _, c := range report.Nodes[0].Conditions {
		got = append(got, c.Name+" "+c.Level.String()+" "+joined(c.Taints))
	}
	if want := []string{"MemoryPressure Degraded ", "KernelDeadlock Degraded example.com/deadlock:NoSchedule (direct)"}; !slices.Equal(got, want) || len(report.Nodes[0].Others) > 0 {
		t.Errorf("%q %+v", got, report.Nodes[0].Others)
	}
	if slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Code == PauseMistyped }) {
		t.Errorf("%+v", report.Findings)
	}
}

// The rules of a Node's override say to which condition a taint belongs.
func TestTaintsOfAnOverrideAreShown(t *testing.T) {
	node := owning(t, taints.Taint{Key: "example.com/tired", Effect: taints.NoSchedule})
	node.Labels = map[string]string{"pool": "a"}
	for i := range node.Conditions {
		if c := &node.Conditions[i]; c.Type == "HostPIDPressure" {
			c.Status = taints.ConditionTrue // so that the key alone does not tell
		}
	}
	for selector, want := range map[string]string{"a": "example.com/tired:NoSchedule (direct)", "b": ""} {
		fleet := NewFleet(Options{})
		fleet.SetInstallation(&installation.Installation{Config: new("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\noverrides:\n" +
			"- nodeSelector: {pool: " + selector + "}\n  rules: [{condition: MemoryPressure, level: Degraded, taint: {key: example.com/tired, effect: NoSchedule}}]\n")})
		fleet.Add(node)
		n := fleet.Report(recordedAt(recorded(t))).Nodes[0]
		if got := joined(n.Conditions[0].Taints); n.Conditions[0].Name != "MemoryPressure" || got != want {
			t.Errorf("pool %s: %s has %q, others are %v", selector, n.Conditions[0].Name, got, n.Others)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	nodes := generated(b, 5000)
	now := recordedAt(recorded(b))
	for b.Loop() {
		fleet := NewFleet(Options{})
		for _, node := range nodes {
			fleet.Add(node)
		}
		if len(fleet.Report(now).Lines(Format{})) < 500 {
			b.Fatal("rows are missing")
		}
	}
}
