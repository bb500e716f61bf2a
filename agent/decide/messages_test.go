package decide_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// stories are what people are told about, in the language of the scenarios. Each
// continues until what it is about is told.
func stories() []struct{ title, text string } {
	const set, evict = "1s memory certain\n", "0s config critical memory\n1s..1m1s every 1s memory critical\n"
	const contest = set + "10s others remove node.kubernetes.io/memory-pressure:NoSchedule\n20s others remove node.kubernetes.io/memory-pressure:NoSchedule\n"
	const starting = "0s config startup example.com/starting; register example.com/starting:NoSchedule\n1s restart\n2s memory ok; disk ok; pid ok; network ok\n"
	const manual = "0s config drop disk; config also disk Degraded example.com/look:NoSchedule - manual\n1s disk certain FileSystemReadOnly\n"
	return []struct{ title, text string }{
		{"well, and not far from the threshold", "1s..21s every 5s memory near"},
		{"bad", set},
		{"bad, and far worse since", set + "1m memory critical"},
		{"good again", set + "10s memory ok"},
		{"good again, the day after midnight", "23h59m memory certain\n23h59m30s memory ok"},
		{"bad, and no number clears it", "1s disk certain"},
		{"good again, and no number cleared it", "1s disk certain\n10s disk ok"},
		{"Unknown for half a minute", "1s..26s every 5s memory unknown"},
		{"tainted and good after a restart", set + "2s restart\n10s disk ok; pid ok; network ok; memory ok"},
		{"near", set + "10s memory near; heartbeat"},
		{"Unknown while bad", set + "10s memory unknown"},
		{"Unknown for long", set + "10s..6m every 10s memory unknown\n6m1s heartbeat"},
		{"bad for the third time", "1s memory certain\n2s..3m every 1s memory ok\n4m memory certain\n4m1s..9m every 1s memory ok\n10m memory certain\n10m1s memory bad"},
		{"cleared", set + "2s..3m every 1s memory ok"},
		{"good again, without a token", "0s config budget 1 10m\n1s memory certain\n2s..3m every 1s memory ok\n4m memory certain\n4m1s..9m every 1s memory ok"},
		{"a value of its own", "0s config rule memory example.com/tired=very:NoSchedule\n" + set + "1m others remove example.com/tired:NoSchedule"},
		{"no rule", "0s config drop memory\n" + set},
		{"removed once", set + "10s others remove node.kubernetes.io/memory-pressure:NoSchedule"},
		{"removed once, without a token", "0s config budget 1 10m\n" + set + "2m others remove node.kubernetes.io/memory-pressure:NoSchedule\n4m others remove node.kubernetes.io/memory-pressure:NoSchedule"},
		{"the policy fails", set + "2s others remove node.kubernetes.io/memory-pressure:NoSchedule by kube-controller-manager"},
		{"the policy fails without a rule that it would keep", "0s config drop disk\n" + set + "2s others remove node.kubernetes.io/memory-pressure:NoSchedule by kube-controller-manager\n3s disk certain"},
		{"contested", contest},
		{"contested, then paused and resumed", contest +
			"50s others annotate taintlet.dev/paused=MemoryPressure\n60s others annotate taintlet.dev/paused-\n2m memory bad"},
		{"mode Observe, and its end", "0s config mode Observe\n" + set + "5s config mode Enforce"},
		{"mode Observe", "0s config mode Observe\n" + set},
		{"paused", "1s others annotate taintlet.dev/paused=true\n2s memory certain"},
		{"paused by a slip of the pen", "1s others annotate taintlet.dev/paused=MemoryPresure\n2s memory certain"},
		{"the end of a pause waits", "0s config budget 1 10m\n1s others annotate taintlet.dev/paused=true\n2s memory certain\n3s others annotate taintlet.dev/paused-\n" +
			"4s others annotate taintlet.dev/paused=true\n5s others remove node.kubernetes.io/memory-pressure:NoSchedule\n6s others annotate taintlet.dev/paused-\n2m memory bad"},
		{"no longer under maintenance", "1s kubelet DrainInProgress True\n2s memory certain\n3m kubelet DrainInProgress False"},
		{"under maintenance", "1s kubelet DrainInProgress True\n2s memory certain"},
		{"paused and under maintenance", "1s others annotate taintlet.dev/paused=DiskPressure\n2s kubelet DrainInProgress True\n3s others annotate taintlet.dev/paused-\n" +
			"4s others annotate taintlet.dev/paused=DiskPressure\n5s kubelet DrainInProgress False"},
		{"a soft taint", "0s config soft memory 30 example.com/memory-elevated:PreferNoSchedule\n1s..2s every 1s memory severity 40"},
		{"a soft taint goes", "0s config soft memory 30 example.com/memory-elevated:PreferNoSchedule\n1s..2s every 1s memory severity 40\n3s..3m every 1s memory severity 10"},
		{"evicting", evict},
		{"an eviction ends, and the newest sample is not bad", evict + "1m2s memory near"},
		{"an eviction was stopped", evict + "2m others remove node.kubernetes.io/memory-pressure:NoExecute\n2m1s..4m every 1s memory critical"},
		{"an eviction waits for a slot", "0s slot none\n" + evict},
		{"an eviction waits for its turn", evict + "1m2s memory bad\n1m3s..3m every 1s memory critical"},
		{"an eviction while paused", "0s config critical memory\n1s memory certain\n2s others annotate taintlet.dev/paused=true\n3s..2m every 1s memory critical"},
		{"no eviction on the control plane", "0s others label node-role.kubernetes.io/control-plane\n" + evict},
		{"an eviction waits for a token", "0s config budget 1 10m\n1s memory certain\n2s..2m3s every 1s memory ok\n3m config critical memory\n3m1s..5m every 1s memory critical"},
		{"fleet brake", "0s peers 12 memory 8\n1s peers 12 memory 8\n6m memory certain"},
		{"suspicion", "1s network suspects"},
		{"the start-up taint goes", starting + "47s network ok"},
		{"the start-up taint waits for proof", starting + "1m network never well"},
		{"the start-up taint stays", starting + "1m network unknown\n11m network unknown"},
		{"somebody else is to remove the taint", manual},
		{"somebody else is to remove the taint of a fault that is over", manual + "2s..3m every 1s disk ok"},
		{"acknowledged while bad", manual + "10s others remove example.com/look:NoSchedule"},
		{"acknowledged later", manual + "2s..3m every 1s disk ok\n4m others remove example.com/look:NoSchedule"},
		{"no rule for this reason", "0s config drop disk; config also disk Degraded example.com/broken:NoSchedule FileSystemReadOnly\n1s disk certain SpaceLow"},
		{"a newer record", set + "2s record version=9"},
		{"a newer record is gone", set + "2s record version=9\n3s record version=1"},
		{"a garbled record", recorded("nonsense")},
		{"a record of a version that never was", recorded(`{"version":0}`)},
		{"a record without a revision", recorded(`{"version":1}`)},
		{"a record of an impossible state", recorded(`{"version":1,"revision":7,"conditions":{"MemoryPressure":{"level":"Unknown"}}}`)},
		{"a record that is too long", recorded(strings.Repeat("x", 1<<17))},
	}
}

// recorded is the story of an agent that finds that record when it starts.
func recorded(text string) string {
	return "1s memory certain\n2s api down\n3s others annotate taintlet.dev/record=" + text + "; restart\n4s api up; memory bad"
}

// testdata/messages.golden has every text of the decider, for a reviewer to read in
// one place. -update writes it.
func TestMessages(t *testing.T) {
	const file = "testdata/messages.golden"
	var all strings.Builder
	all.WriteString("Every text that the decider has for people: notices, which become Events and log lines, and\nafter =>, where a story changes it, the Node condition in the end. Written by make scenarios.\n")
	kinds := map[decide.Kind]bool{}
	for _, story := range stories() {
		fmt.Fprintf(&all, "\n# %s\n", story.title)
		for _, n := range tell(t, story.text, &all) {
			kinds[n.Kind] = true
		}
	}
	for _, kind := range kindsInSource(t) {
		if !kinds[kind] {
			t.Errorf("no story tells %s", kind)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	compare(t, string(want), all.String())
}

// tell plays a story and writes down what people are told.
func tell(t *testing.T, text string, out *strings.Builder) []decide.Notice {
	t.Helper()
	w := newWorld()
	w.retouch = realistic
	if err := w.line("0s memory ok"); err != nil {
		t.Fatal(err)
	}
	before := conditionsOf(w)
	w.notices = nil
	for line := range strings.Lines(text) {
		if err := w.line(strings.TrimSpace(line)); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	for _, n := range w.notices {
		level := ""
		if n.Kind == decide.LevelChanged {
			level = " " + n.To.String()
		}
		fmt.Fprintf(out, "%s%s %s: %s\n", n.Kind, level, n.Reason, n.Message)
	}
	for i, shown := range conditionsOf(w) {
		if i >= len(before) || shown != before[i] {
			fmt.Fprintf(out, "=> %s\n", shown)
		}
	}
	return w.notices
}

func conditionsOf(w *world) []string {
	all := make([]string, 0, len(w.node.Conditions))
	for _, c := range w.node.Conditions {
		all = append(all, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return all
}

// realistic gives a sample the words of a probe.
func realistic(o *probes.Observation) {
	switch {
	case o.Condition != probes.MemoryPressure:
		return
	case o.Level == probes.OK && o.Hysteresis:
		o.Reason, o.Message, o.Severity = "MemoryNearThreshold", "available 1 GiB of 15.6 GiB (6.4 %), threshold 5 %", 22
	case o.Level == probes.OK:
		o.Reason, o.Message = "MemorySufficient", "available 9.1 GiB of 15.6 GiB (58.3 %), threshold 5 %"
	case o.Level == probes.Degraded:
		o.Reason, o.Message, o.Severity = "MemoryLow", "available 412 MiB of 15.6 GiB (2.5 %), threshold 5 %", 74
	case o.Level == probes.Critical:
		o.Reason, o.Message, o.Severity = "MemoryStalledFully", "available 108 MiB of 15.6 GiB (0.6 %), threshold 5 %; all tasks stalled 62 % of the last 10.0 s, threshold 40 %", 93
	default:
		o.Reason, o.Message = "MeminfoUnreadable", "open /proc/meminfo: permission denied"
		return
	}
	o.Clears = "above 7.5 %"
}

var kindLine = regexp.MustCompile(`Kind\s+= "(\w+)"`)

// kindsInSource returns the kinds of Notices that the source declares.
func kindsInSource(t *testing.T) (kinds []decide.Kind) {
	t.Helper()
	source, err := os.ReadFile("state.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range kindLine.FindAllStringSubmatch(string(source), -1) {
		kinds = append(kinds, decide.Kind(match[1]))
	}
	if len(kinds) < 10 {
		t.Fatalf("found only %v", kinds)
	}
	return kinds
}
