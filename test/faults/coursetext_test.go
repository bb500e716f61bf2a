package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/cluster"
)

// versionOf is a version of a Node with that record and these taints.
func versionOf(at time.Duration, version, record string, keys ...string) versionAt {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: version}}
	if record != "" {
		node.Annotations = map[string]string{taints.RecordAnnotation: record}
	}
	for _, key := range keys {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	return versionAt{node, at}
}

// A course has the samples, the answers and the changes of others in their order, a write of
// which no agent heard, and the times in which an agent was behind.
func TestCourseOfADecider(t *testing.T) {
	sample := func(level probes.Level, certain bool) []probes.Observation {
		return []probes.Observation{{Condition: probes.MemoryPressure, Level: level, Certain: certain}}
	}
	versions := []versionAt{
		versionOf(time.Second, "1", "", "dedicated"),
		versionOf(3*time.Second, "2", "a", "dedicated", "ours"),
		versionOf(4*time.Second, "3", "a", "dedicated"),
		versionOf(6*time.Second, "4", "b", "dedicated", "ours"),
	}
	traces := []trace{
		{"first", 1500 * time.Millisecond, []decision{
			{At: 2 * time.Second, Observations: sample(probes.Degraded, true), Version: "1", Slot: decide.SlotNone},
			{At: 3100 * time.Millisecond, Version: "2", Slot: decide.SlotNone, Written: true},
			{At: 5 * time.Second, Observations: sample(probes.OK, false), Version: "2", Slot: decide.SlotHeld},
		}},
		{"first", 7 * time.Second, []decision{{At: 7500 * time.Millisecond, Version: "3", Slot: decide.SlotUnknown}}},
	}
	got := courseOf("a test", versions, traces)
	want := `0s others add dedicated:NoSchedule
500ms restart
1s slot none
1s policy absent
1s memory certain
2.1s write lands
3s others remove ours:NoSchedule
4s watch waits
4s slot held
4s memory ok
4s watch goes on
5s write lands unheard
6s restart stale
6.5s watch waits
6.5s slot unknown
6.5s policy absent
6.5s watch goes on
`
	if _, after, found := strings.Cut(got, "writes wait\n"); !found || after != want {
		t.Errorf("the course is\n%s\nwant\n%s", got, want)
	}
}

// A branch is named by its function and its first line, and an exception may stand for many.
func TestUnreachedBranches(t *testing.T) {
	s, err := readSource("../../agent/decide/step.go")
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for i, line := range s.lines {
		if strings.Contains(line, "return s, t.Decision") {
			number = i + 1
		}
	}
	b := s.branch(number)
	b.file = "step.go"
	if b.String() != `step.go Step "return s, t.Decision"` {
		t.Errorf("the branch is %s", b)
	}
	for _, exceptions := range [][]exception{{{"step.go", "*", "*", "why"}}, {{"step.go", "Step", "return s, t.Decision", "why"}}} {
		if left := unreached([]branch{b}, exceptions); len(left) != 0 {
			t.Errorf("%v does not cover %s", exceptions, b)
		}
	}
	for _, other := range []exception{{"step.go", "State.repair", "*", "why"}, {"soft.go", "*", "*", "why"}} {
		if left := unreached([]branch{b}, []exception{other}); len(left) != 1 {
			t.Errorf("%v covers %s", other, b)
		}
	}
	b.isReached = true
	if left := unreached([]branch{b}, nil); len(left) != 0 {
		t.Errorf("%s was reached", b)
	}
}

// A fault that befell nobody, and in a full run one that a kind of request was spared, is told.
func TestUnreachedPoints(t *testing.T) {
	p := points{count: map[string]int{}, begins: map[string]int{}}
	all := troubles()
	for _, kind := range all {
		p.begins[kind.name] = 1
		for _, of := range pointsOf(kind.name) {
			p.count[kind.name+" | "+of] = 1
		}
	}
	if left := p.unreachedPoints(true); len(left) != 0 {
		t.Errorf("all were reached, but for %v", left)
	}
	delete(p.count, "conflict | get nodes")
	if left := p.unreachedPoints(false); len(left) != 0 {
		t.Errorf("a run that is not full lacks %v", left)
	}
	if left := p.unreachedPoints(true); len(left) != 1 || left[0] != (point{"conflict", "get nodes"}) {
		t.Errorf("without conflicts of get nodes, %v was not reached", left)
	}
	delete(p.begins, "SIGKILL")
	if left := p.unreachedPoints(false); len(left) != 1 || left[0] != (point{trouble: "SIGKILL"}) {
		t.Errorf("without SIGKILL, %v was not reached", left)
	}
}

// An aimed seed has the trouble of its point, at a target with such requests.
func TestAimedSeeds(t *testing.T) {
	at := pointOf("slow answer of list nodes")
	if at != (point{"slow answer", "list nodes"}) {
		t.Fatalf("the point is %q", at)
	}
	all := targets()
	for seed := range uint64(aims) {
		for _, s := range aimed(seed, at) {
			kinds := all[s.choices[0]%uint64(len(all))].kinds
			if len(s.troubles) != 2 || s.troubles[0].name != at.trouble || !slices.Contains(kinds, at.kind) {
				t.Errorf("seed %d: %v befalls %v", seed, s.troubles[0].name, kinds)
			}
		}
	}
	for _, text := range []string{"conflict", "a webhook that strips of taints"} {
		if at := pointOf(text); at != (point{trouble: text}) {
			t.Errorf("%q is taken for %q", text, at)
		}
	}
}

// dwellLess is a course in which the host is critical for a third of the time after which it
// may evict.
const dwellLess = `10ms restart
20ms memory ok
100ms policy absent
200ms slot held
1s memory certain
1.01s write lands
2s pid certain critical
2.01s write lands
2.3s pid certain critical
2.31s write lands
2.6s pid ok
3s write lands unheard
3.2s restart
4s pid ok
5s write lands
`

// The decider alone is given a course. If it is wrong in one place, the shortest scenario in
// which it is wrong is told; if it is not, the fault is elsewhere.
func TestReplayTellsWhoseFaultItIs(t *testing.T) {
	cluster.SkipUnlessRequired(t) // it compiles the tests of the decider twice
	course := "0s " + strings.Join(courseConfiguration(), "\n0s ") + "\n" + dwellLess
	if said, isOfDecider, err := replay(t, course); err != nil || isOfDecider {
		t.Errorf("the decider is right, and it was said: %s, %v", said, err)
	}
	t.Setenv(mutantEnv, "no dwell before an eviction")
	said, isOfDecider, err := replay(t, course)
	if err != nil || !isOfDecider {
		t.Fatalf("the decider waits for no dwell, and it was said: %s, %v", said, err)
	}
	_, after, _ := strings.Cut(said, "writes wait\n")
	if samples := strings.Count(after, " pid "); !strings.Contains(said, "PIDPressure evicts after") || samples == 0 || strings.Count(after, "\n") > 5 {
		t.Errorf("the scenario is not short:\n%s", said)
	}
}
