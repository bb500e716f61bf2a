package status

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

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

// Each Node has one State, and they add up.
func TestSummaryAddsUp(t *testing.T) {
	fleet := NewFleet(nil, DefaultSilentAfter)
	now := recordedAt(recorded(t))
	for _, node := range generated(t, 200) {
		fleet.Add(node)
	}
	for _, node := range recorded(t) {
		fleet.Add(node)
	}
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		s := fleet.Report(at).Summary
		if s.Well+s.Tainted+s.Untainted+s.Unknown+s.Silent != s.Agents || s.Agents+s.WithoutAgent != s.Nodes || s.WithoutAgent != 1 {
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
	fleet := NewFleet(nil, DefaultSilentAfter)
	fleet.Add(node)
	if s := fleet.Report(now).Summary; s.Well != 1 {
		t.Errorf("%+v", s)
	}
	node.SpecWrittenAt, node.StatusWrittenAt = time.Time{}, time.Time{} // then its own clock does
	node.Annotations = nil
	fleet.Add(node)
	if s := fleet.Report(now).Summary; s.Silent != 1 || s.String() != "1 agent, 0 well, 1 silent for 24 h" {
		t.Errorf("%+v", s)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", 12*time.Minute + 50*time.Second: "12 min", time.Hour: "1 h",
		3*time.Hour + 20*time.Minute: "3 h 20 min", 47 * time.Hour: "47 h", 48 * time.Hour: "2 d",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

// A fleet of 5,000 Nodes is kept in little memory: rows, and no Nodes.
func TestMemoryOfALargeFleet(t *testing.T) {
	fixtures := generated(t, 10)
	fleet := NewFleet(nil, DefaultSilentAfter)
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

func BenchmarkReport(b *testing.B) {
	nodes := generated(b, 5000)
	now := recordedAt(recorded(b))
	for b.Loop() {
		fleet := NewFleet(nil, DefaultSilentAfter)
		for _, node := range nodes {
			fleet.Add(node)
		}
		if err := fleet.Report(now).Table(io.Discard, false, 0); err != nil {
			b.Fatal(err)
		}
	}
}
