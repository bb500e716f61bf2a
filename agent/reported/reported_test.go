package reported

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

// world is a Node, its reporter, and a clock.
type world struct {
	t     *testing.T
	now   time.Time
	board *Board
	probe probes.Probe
	node  taints.Node
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.board = NewBoard(func() time.Time { return w.now })
	w.probe = w.board.Probe(o)
	return w
}

// reports is a version of the Node with that condition. heartbeat is what its reporter's
// clock says.
func (w *world) reports(status taints.ConditionStatus, heartbeat time.Duration, reason, message string) {
	node := w.node.Clone()
	node.Conditions = []taints.NodeCondition{
		{Type: "Other", Status: taints.ConditionTrue},
		{Type: "KernelDeadlock", Status: status, Reason: reason, Message: message, LastHeartbeatTime: time.Unix(0, 0).Add(heartbeat)},
	}
	w.node = *node
	w.board.Put(node)
}

func (w *world) after(d time.Duration) *world { w.now = w.now.Add(d); return w }

func (w *world) is(want string) {
	w.t.Helper()
	o := w.probe.Observe(w.t.Context())
	if got := o.Level.String() + " " + o.Reason + ": " + o.Message; got != want || o.Condition != "KernelDeadlock" {
		w.t.Errorf("%s at %s: %s, want %s", o.Condition, w.now.Format(time.TimeOnly), got, want)
	}
}

const (
	hung = "Degraded TaskHung: KernelDeadlock is True: task docker:7 blocked for more than 300 s"
	well = "OK KernelHasNoDeadlock: KernelDeadlock is False: kernel has no deadlock"
)

var deadlock = Options{Type: "KernelDeadlock", BadStatus: true, StaleAfter: 15 * time.Minute}

func (w *world) hangs(heartbeat time.Duration) {
	w.reports(taints.ConditionTrue, heartbeat, "TaskHung", "task docker:7 blocked for more than 300 s")
}

func (w *world) works(heartbeat time.Duration) {
	w.reports(taints.ConditionFalse, heartbeat, "KernelHasNoDeadlock", "kernel has no deadlock")
}

// A reporter says nothing before it has said something since the start, and nothing when it
// has been silent for long, whether what stands on the Node is good or bad.
func TestSilentReporters(t *testing.T) {
	for _, report := range []struct {
		say  func(*world, time.Duration)
		want string
	}{{(*world).hangs, hung}, {(*world).works, well}} {
		w := newWorld(t, deadlock)
		w.is("Unknown NodeNotSeen: the Node has not been seen yet")
		report.say(w, 0)
		w.is("Unknown HeartbeatNotSeen: KernelDeadlock has not been updated since this agent started")
		w.after(5 * time.Minute).is("Unknown HeartbeatNotSeen: KernelDeadlock has not been updated since this agent started")
		report.say(w, time.Minute)
		w.is(report.want)
		w.after(14 * time.Minute).is(report.want)
		w.after(time.Minute).is("Unknown ConditionStale: KernelDeadlock has not been updated for 15m0s")
		report.say(w, 2*time.Minute)
		w.is(report.want)
	}
}

// What appears on the Node, and what changes without a heartbeat, was said by somebody.
func TestSignsOfLife(t *testing.T) {
	w := newWorld(t, deadlock)
	w.board.Put(&taints.Node{})
	w.is("Unknown ConditionMissing: the Node has no condition KernelDeadlock")
	w.hangs(0)
	w.is(hung)
	w.works(0)
	w.is(well)
	w.board.Put(&taints.Node{})
	w.is("Unknown ConditionMissing: the Node has no condition KernelDeadlock")
	w.board.Put(nil)
	w.is("Unknown NodeNotSeen: the Node has not been seen yet")
}

// What is reported between the start of the agent and its first sample counts.
func TestReportBeforeTheFirstSample(t *testing.T) {
	w := newWorld(t, deadlock)
	w.works(0)
	w.hangs(time.Minute)
	w.is(hung)
	w.probe = w.board.Probe(deadlock) // of another configuration
	w.is("Unknown HeartbeatNotSeen: KernelDeadlock has not been updated since this agent started")
}

// No clock of a reporter is believed: a heartbeat in the past or in the future is one
// sign of life, and the same one again is none.
func TestForgedHeartbeats(t *testing.T) {
	w := newWorld(t, deadlock)
	w.hangs(0)
	w.is("Unknown HeartbeatNotSeen: KernelDeadlock has not been updated since this agent started")
	w.hangs(1000 * time.Hour)
	w.is(hung)
	w.after(15 * time.Minute).hangs(1000 * time.Hour)
	w.is("Unknown ConditionStale: KernelDeadlock has not been updated for 15m0s")
	w.hangs(-1000 * time.Hour)
	w.is(hung)
	w.after(15 * time.Minute)
	w.is("Unknown ConditionStale: KernelDeadlock has not been updated for 15m0s")
}

// A reporter that never refreshes what it says counts for ever with staleAfter: 0.
func TestNeverStale(t *testing.T) {
	never := deadlock
	never.StaleAfter = 0
	w := newWorld(t, never)
	w.hangs(0)
	w.is(hung)
	w.after(1000 * time.Hour).is(hung)
}

// What others write has any length and any characters.
func TestHostileReports(t *testing.T) {
	w := newWorld(t, Options{Type: "KernelDeadlock", BadStatus: false})
	w.reports("False", 0, "no reason at all", strings.Repeat("\x1b[2J\x00\n\u0085", 5000)+"\xff")
	o := w.probe.Observe(t.Context())
	if o.Level != probes.Degraded || o.Reason != "Reported" || len(o.Message) > 300 || strings.ContainsAny(o.Message, "\x1b\x00\n") || o.Severity <= 50 {
		t.Errorf("%+v", o)
	}
	for _, status := range []taints.ConditionStatus{"Unknown", "", "true", "maybe\x1b"} {
		w.reports(status, 0, "A", "b")
		if o := w.probe.Observe(t.Context()); o.Level != probes.Unknown || o.Reason != "ReportedUnknown" || strings.Contains(o.Message, "\x1b") {
			t.Errorf("%q: %+v", status, o)
		}
	}
	w.reports("True", 0, strings.Repeat("A", 65), "")
	if o := w.probe.Observe(t.Context()); o.Level != probes.OK || o.Reason != "Reported" {
		t.Errorf("%+v", o)
	}
}

// Another status wakes its probe, also the one that took the place of another. A
// heartbeat does not.
func TestAnotherStatusWakes(t *testing.T) {
	w := newWorld(t, deadlock)
	old := w.probe
	w.probe = w.board.Probe(deadlock)
	isWoken := func() bool {
		select {
		case <-old.Wake():
			t.Error("a probe that was replaced is woken")
		case <-w.probe.Wake():
			return true
		default:
		}
		return false
	}
	w.works(0)
	if !isWoken() {
		t.Error("the first status does not wake")
	}
	w.works(time.Minute)
	if !isWoken() {
		t.Error("the first heartbeat, from which on it counts, does not wake")
	}
	w.works(2 * time.Minute)
	if isWoken() {
		t.Error("a heartbeat wakes")
	}
	w.hangs(time.Minute)
	w.works(time.Minute) // both before the probe looks
	if !isWoken() || isWoken() {
		t.Error("two changes do not wake once")
	}
}

// docs/reasons.md explains each reason of an Unknown sample that this package gives.
func TestReasonsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Conditions of other programs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/reasons.md has no section Conditions of other programs")
	}
	documented, given := map[string]bool{}, map[string]bool{"Reported": true}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		documented[row[1]] = true
	}
	for _, file := range []string{"board.go", "judge.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range regexp.MustCompile(`\.unknown\("(\w+)"`).FindAllStringSubmatch(string(source), -1) {
			given[call[1]] = true
		}
	}
	fixtures.CompareNames(t, "docs/reasons.md", documented, given)
}
