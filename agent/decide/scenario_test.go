package decide_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

var update = flag.Bool("update", false, "write what happened into the scenario files")

// TestScenarios plays every file of testdata: lines of "TIME EVENT => WHAT
// FOLLOWED". testdata/README.md tells the language. With -update the right
// hand sides are written anew, to be read in the diff.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update && got != string(want) {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			compare(t, string(want), got)
		})
	}
}

func compare(t *testing.T, want, got string) {
	t.Helper()
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i, line := range gotLines {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Errorf("line %d\nhappened: %s\nexpected: %s", i+1, line, wantLines[min(i, len(wantLines)-1)])
		}
	}
}

// play runs a scenario and returns it with what followed each event.
func play(t *testing.T, text string) string {
	t.Helper()
	w := newWorld()
	var out strings.Builder
	for line := range strings.Lines(text) {
		event, _, _ := strings.Cut(strings.TrimSpace(line), " =>")
		switch {
		case event == "" || strings.HasPrefix(event, "#"):
			out.WriteString(line)
		default:
			if err := w.line(event); err != nil {
				t.Fatalf("%q: %v", event, err)
			}
			fmt.Fprintf(&out, "%s => %s\n", strings.TrimRight(event, " "), w.told())
		}
	}
	return out.String()
}

// world is a decider, its Node, and everybody else who may touch that Node.
type world struct {
	cfg   *config.Config
	state decide.State
	facts taints.Facts
	node  *corev1.Node // nil: deleted
	read  *decide.Node
	apiUp bool
	// now counts from the start of the scenario, boot from the host's boot,
	// wall is how far the wall clock has been stepped.
	now, wall time.Duration
	boot      decide.Boot
	started   time.Duration // of the present boot
	looking   map[probes.Condition]probes.Observation
	happened  []string
	writes    int
}

func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newWorld() *world {
	w := &world{
		cfg:     config.Default(),
		facts:   taints.Facts{LifecycleController: true, KeepPolicy: true, StandInPrefix: taints.DefaultStandInPrefix},
		apiUp:   true,
		looking: map[probes.Condition]probes.Observation{},
	}
	w.create("1")
	w.start("boot-1")
	for _, c := range probes.Conditions()[1:] { // so that conditions can be reported
		w.look(probes.Observation{Condition: c, Level: probes.OK, Reason: "Fine", Message: "fine"})
	}
	w.happened, w.writes = nil, 0
	return w
}

func (w *world) create(uid string) {
	w.setNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host", UID: types.UID(uid), ResourceVersion: "1"}})
}

func (w *world) setNode(node *corev1.Node) {
	w.node, w.read = node, decide.Read(node)
}

// start starts the agent, in this boot or in a new one.
func (w *world) start(bootID string) {
	if bootID != w.boot.ID {
		w.started = w.now
	}
	w.boot = decide.Boot{ID: bootID, At: epoch().Add(w.started + w.wall)}
	w.state = decide.New(w.boot)
}

// clock is the boot clock of the running process.
func (w *world) clock() time.Time { return w.boot.At.Add(w.now - w.started) }

func (w *world) look(o probes.Observation) {
	w.step(decide.Inputs{Observations: []probes.Observation{o}})
}

// step takes one step; the answer is written at once when the API is up.
func (w *world) step(in decide.Inputs) {
	in.Facts = w.facts
	if w.node != nil && w.apiUp {
		in.Node = w.read
	}
	var d decide.Decision
	w.state, d = decide.Step(w.cfg, w.state, in, w.clock())
	for _, n := range d.Notices {
		if n.Kind == decide.LevelChanged {
			w.happen(fmt.Sprintf("%s %s", short(n.Condition), n.To))
		} else {
			w.happen(string(n.Kind))
		}
	}
	if d.Change == nil {
		return
	}
	before := w.node
	after := d.Change.ApplyTo(before)
	if _, differs := d.Change.Differs(before); differs {
		w.writes++
		w.happen("write" + difference(before.Spec.Taints, after.Spec.Taints))
	}
	w.setNode(after)
	w.step(decide.Inputs{Written: true})
}

func (w *world) happen(what string) {
	w.happened = append(w.happened, fmt.Sprintf("%s %s", w.now, what))
}

func (w *world) told() string {
	told := strings.Join(w.happened, ", ")
	w.happened = nil
	if told == "" {
		return "nothing"
	}
	return told
}

func difference(before, after []corev1.Taint) string {
	var b strings.Builder
	for _, t := range before {
		if !taints.Has(after, taints.PairOf(t)) {
			fmt.Fprintf(&b, " -%s", taints.PairOf(t))
		}
	}
	for _, t := range after {
		if !taints.Has(before, taints.PairOf(t)) {
			fmt.Fprintf(&b, " +%s", taints.PairOf(t))
		}
	}
	return b.String()
}

func short(c probes.Condition) string {
	return map[probes.Condition]string{
		probes.MemoryPressure: "memory", probes.DiskPressure: "disk",
		probes.PIDPressure: "pid", probes.NetworkUnavailable: "network",
	}[c]
}

// line plays one line. "TIME EVENT" happens once, "FROM..TO EVERY EVENT" again
// and again.
func (w *world) line(text string) error {
	fields := strings.Fields(text)
	from, to, repeated := strings.Cut(fields[0], "..")
	begin, err := time.ParseDuration(from)
	if err != nil {
		return err
	}
	if !repeated {
		w.now = begin
		return w.event(fields[1:])
	}
	end, err := time.ParseDuration(to)
	if err != nil {
		return err
	}
	every, err := time.ParseDuration(fields[1])
	if err != nil || every <= 0 {
		return fmt.Errorf("interval %q: %w", fields[1], err)
	}
	for w.now = begin; w.now <= end; w.now += every {
		if err := w.event(fields[2:]); err != nil {
			return err
		}
	}
	return nil
}

// event is one of: CONDITION LOOK; one of the verbs below.
func (w *world) event(words []string) error {
	for _, c := range probes.Conditions() {
		if words[0] == short(c) {
			o, err := observation(c, words[1])
			if err != nil {
				return err
			}
			w.look(o)
			return nil
		}
	}
	act, ok := verbs()[words[0]]
	if !ok {
		return fmt.Errorf("no such event")
	}
	if err := act(w, words[1:]); err != nil {
		return err
	}
	w.step(decide.Inputs{})
	return nil
}

func observation(c probes.Condition, look string) (probes.Observation, error) {
	o := probes.Observation{Condition: c, Reason: "Seen", Message: look}
	switch look {
	case "ok":
		o.Level = probes.OK
	case "near":
		o.Level, o.Hysteresis = probes.OK, true
	case "bad":
		o.Level = probes.Degraded
	case "certain":
		o.Level, o.Certain = probes.Degraded, true
	case "critical":
		o.Level = probes.Critical
	case "unknown":
		o.Level = probes.Unknown
	default:
		return o, fmt.Errorf("look %q is not ok, near, bad, certain, critical or unknown", look)
	}
	return o, nil
}

func verbs() map[string]func(w *world, args []string) error {
	return map[string]func(w *world, args []string) error{
		"restart":  func(w *world, _ []string) error { w.start(w.boot.ID); return nil },
		"reboot":   func(w *world, _ []string) error { w.start(w.boot.ID + "'"); return nil },
		"wall":     func(w *world, args []string) error { d, err := time.ParseDuration(args[0]); w.wall += d; return err },
		"api":      func(w *world, args []string) error { w.apiUp = args[0] == "up"; return nil },
		"policy":   func(w *world, args []string) error { w.facts.KeepPolicy = args[0] == "present"; return nil },
		"others":   (*world).others,
		"kubelet":  (*world).kubelet,
		"recreate": func(w *world, _ []string) error { w.create(string(w.node.UID) + "1"); return nil },
		"config":   (*world).configure,
		"node":     func(w *world, _ []string) error { w.showNode(); return nil },
	}
}

// others changes the Node as anybody else might: remove PAIR, add PAIR,
// annotate KEY=VALUE.
func (w *world) others(args []string) error {
	node := w.node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	switch args[0] {
	case "remove", "add":
		var pair taints.Pair
		if err := pair.UnmarshalText([]byte(args[1])); err != nil {
			return err
		}
		if args[0] == "add" {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: pair.Key, Effect: pair.Effect})
			break
		}
		node.Spec.Taints, _, _ = taints.Plan(node.Spec.Taints, []taints.Pair{pair}, nil)
	case "annotate":
		key, value, _ := strings.Cut(strings.Join(args[1:], " "), "=")
		node.Annotations[key] = value
	default:
		return fmt.Errorf("others %q", args[0])
	}
	w.setNode(node)
	return nil
}

// kubelet sets a condition of the kubelet's: TYPE STATUS.
func (w *world) kubelet(args []string) error {
	node := w.node.DeepCopy()
	change := taints.Change{Conditions: []corev1.NodeCondition{{Type: corev1.NodeConditionType(args[0]), Status: corev1.ConditionStatus(args[1])}}}
	node.Status = change.ApplyTo(node).Status
	w.setNode(node)
	return nil
}

// configure changes the configuration: "critical CONDITION" enables Critical,
// "drop CONDITION" drops the condition's rules, "key PAIR" replaces the memory
// rule's taint.
func (w *world) configure(args []string) error {
	cfg := *w.cfg
	switch args[0] {
	case "critical":
		for _, rule := range config.BuiltInRules() {
			if rule.Level == probes.Critical && short(rule.Condition) == args[1] {
				cfg.Rules = append(cfg.Rules[:len(cfg.Rules):len(cfg.Rules)], rule)
			}
		}
	case "drop":
		cfg.Rules = nil
		for _, rule := range w.cfg.Rules {
			if short(rule.Condition) != args[1] {
				cfg.Rules = append(cfg.Rules, rule)
			}
		}
	case "key":
		var pair taints.Pair
		if err := pair.UnmarshalText([]byte(args[1])); err != nil {
			return err
		}
		cfg.Rules = []config.Rule{{Condition: probes.MemoryPressure, Level: probes.Degraded, Taint: config.Taint{Key: pair.Key, Effect: pair.Effect}}}
	case "damping":
		for _, d := range []*config.Debounce{&cfg.Memory.Debounce, &cfg.Disk.Debounce, &cfg.PID.Debounce, &cfg.Network.Debounce} {
			d.MaxClearAfter = d.ClearAfter
		}
	default:
		return fmt.Errorf("config %q", args[0])
	}
	w.cfg = &cfg
	return nil
}

// showNode tells the Node's taints and the held annotation.
func (w *world) showNode() {
	var pairs []string
	for _, t := range w.node.Spec.Taints {
		pairs = append(pairs, taints.PairOf(t).String())
	}
	w.happen("taints [" + strings.Join(pairs, " ") + "] held " + strconv.Quote(w.node.Annotations[taints.HeldAnnotation]))
}
