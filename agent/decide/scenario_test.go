package decide_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
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
	if !strings.HasPrefix(text, "# ") {
		t.Error("the first line has to be a comment that says the rule")
	}
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
		if w.judge.verdict != "" {
			t.Errorf("%q: %s", event, w.judge.verdict)
			w.judge.verdict = ""
		}
	}
	return out.String()
}

// world is a decider, its Node, and everybody else who may touch that Node.
type world struct {
	cfg    *config.Config
	policy *decide.Policy // of cfg
	state  decide.State
	facts  taints.Facts
	slot   decide.Slot
	peers  decide.Peers
	node   *taints.Node
	read   *decide.Node
	// known is the Node as the agent knows it: behind while the API is down,
	// nil while the Node is deleted.
	known *decide.Node
	apiUp bool
	// answersSince is when it was last down.
	answersSince time.Time
	// now counts from the start of the scenario, boot from the host's boot,
	// wall is how far the wall clock has been stepped.
	now, wall time.Duration
	boot      decide.Boot
	started   time.Duration // of the present boot
	begun     time.Duration // of the present line
	happened  []string
	notices   []decide.Notice
	// retouch, when set, changes each sample before it is taken.
	retouch func(*probes.Observation)
	at      []time.Duration // when each of them happened
	nested  int             // writes that followed from one another
	starts  int             // of agents
	// job is what the writer was given and was not seen to land. late is that of a process
	// that ended, which may still land.
	job, late *job
	// writesWait: nothing is written until a line says so. watchWaits: no change of the
	// Node by others is seen until then.
	writesWait, watchWaits bool
	// answer is that of a write which landed, until it arrives: of the job sent. answerTo is what
	// the agent knew when the write landed.
	answer, answerTo *decide.Node
	sent             *job
	// previous is the version of the Node before the newest.
	previous *decide.Node
	// judge checks each step. isQuiet: nothing is told, which is faster.
	judge   judge
	isQuiet bool
	memo    *memo
}

func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newWorld() *world {
	w := &world{
		cfg:    config.Default(),
		policy: config.Default().Policy(),
		facts:  taints.Facts{KeepPolicy: true, KeepVersion: "1", StandInPrefix: taints.DefaultStandInPrefix},
		slot:   decide.SlotHeld,
		apiUp:  true,
	}
	w.create("1")
	w.start("boot-1")
	for _, c := range names()[1:] { // so that conditions can be reported
		w.sample(probes.Observation{Condition: c, Level: probes.OK, Reason: "Fine", Message: "fine"})
	}
	w.happened, w.at = nil, nil
	return w
}

func (w *world) create(uid string) {
	w.setNode(&taints.Node{Name: "host", UID: uid, ResourceVersion: "1"})
}

func (w *world) setNode(node *taints.Node) {
	if w.node != nil {
		w.judge.othersChanged(w, node)
	}
	w.put(node)
	if w.apiUp && !w.watchWaits {
		w.known = w.read
	}
}

// put makes this the newest version of the Node.
func (w *world) put(node *taints.Node) {
	w.previous = w.read
	w.node, w.read = node, w.memo.read(node)
}

// start starts the agent, in this boot or in a new one.
func (w *world) start(bootID string) {
	if bootID != w.boot.ID {
		w.started = w.now
	}
	w.boot = decide.Boot{ID: bootID, At: epoch().Add(w.started + w.wall)}
	w.starts++
	w.state = decide.New(w.boot, fmt.Sprintf("agent-%d", w.starts))
	w.late, w.job, w.answer, w.sent = w.job, nil, nil, nil
	w.judge.started(w)
	switch {
	case !w.apiUp:
		w.known = nil
	case w.known != nil: // it reads the newest version, whatever the watch of the one before showed
		w.known = w.read
	}
}

// reboot starts the host and the agent anew.
func (w *world) reboot() { w.start(w.boot.ID + "'") }

// clock is the boot clock of the running process.
func (w *world) clock() time.Time { return w.boot.At.Add(w.now - w.started) }

func (w *world) sample(o probes.Observation) {
	w.step(decide.Inputs{Observations: []probes.Observation{o}})
}

// step takes one step. While the API is up the answer is written at once, unless writes
// wait; otherwise it is lost, and the agent goes on with the Node that it knows.
func (w *world) step(in decide.Inputs) {
	in.Facts, in.Slot, in.Peers = w.facts, w.slot, w.peers
	in.Node, in.AnswersSince = w.known, w.answersSince
	var d decide.Decision
	before := w.state
	w.state, d = decide.Step(w.policy, w.state, in, w.clock())
	w.judge.decided(w, &before, in, d)
	if !w.isQuiet {
		w.tell(d.Notices)
	}
	if w.state.WhyNotWriting() != "" {
		w.job = nil
	}
	if d.Desired == nil || !w.apiUp {
		return
	}
	objection := w.judge.objection(w, in, d.Desired)
	if w.answer != nil && w.isSent(*d.Desired) {
		return // as node.Outbox.Put
	}
	w.job = &job{w.known, *d.Desired, objection}
	if !w.writesWait && w.answer == nil {
		w.land(true)
	}
}

// tell remembers what the notices say.
func (w *world) tell(notices []decide.Notice) {
	w.notices = append(w.notices, notices...)
	for _, n := range notices {
		if n.Kind == decide.LevelChanged {
			w.happen(fmt.Sprintf("%s %s", short(n.Condition), n.To))
		} else {
			w.happen(string(n.Kind))
		}
	}
}

// job is what is desired of the Node, and the version on which it was decided.
type job struct {
	base    *decide.Node
	desired taints.Desired
	// objection is what the judge has against it.
	objection string
}

// land lets the API server take what the writer was given. isHeard: the answer arrives.
func (w *world) land(isHeard bool) {
	outcome := w.take(w.job)
	if !isHeard || outcome == isRefused { // the writer tries again
		return
	}
	w.job = nil
	w.known = w.read
	if outcome == isOvertaken { // decided anew on the newer Node
		w.step(decide.Inputs{})
		return
	}
	if w.nested++; w.nested > 10 {
		panic("the decider never settles")
	}
	w.step(decide.Inputs{Written: true, Answer: w.node})
	w.nested--
}

// take is the API server with a write that was decided on some version of the Node, as
// Apply does it (taints/apiserver/client.go). A NoExecute taint is written only with the
// slot.
func (w *world) take(job *job) outcome {
	before, desired := w.node, job.desired
	if before != job.base.Node && !desired.StillFits(job.base.Node, before) {
		return isOvertaken
	}
	if w.slot != decide.SlotHeld && evicts(desired, before) {
		return isRefused
	}
	after := desired.ApplyTo(before)
	if !taints.Equal(before.Taints, after.Taints) {
		after.LastWriter = ""
	}
	stamp(before, after, desired.Conditions, epoch().Add(w.now))
	if !w.isQuiet {
		w.tellWrite(desired, before, after)
	}
	w.put(after)
	w.judge.wrote(w, before, after, job)
	return hasLanded
}

// outcome is what became of a write.
type outcome int

const (
	hasLanded outcome = iota
	// isOvertaken: the Node changed in a way for which nothing was decided.
	isOvertaken
	isRefused
)

// evicts reports whether what is desired adds a NoExecute taint to a Node.
func evicts(desired taints.Desired, node *taints.Node) bool {
	return slices.ContainsFunc(desired.Taints, func(t taints.Taint) bool { return t.Effect == taints.NoExecute && !node.Has(t.Pair()) })
}

func (w *world) tellWrite(desired taints.Desired, before, after *taints.Node) {
	if was, is := before.Condition(decide.RepairType), after.Condition(decide.RepairType); was != nil && is != nil && was.Status != is.Status {
		w.happen("repair " + string(is.Status))
	}
	if _, differs := desired.Differs(before); differs && onlyTells(before, after) {
		w.happen("retold")
	} else if differs {
		w.happen("write" + difference(before.Taints, after.Taints))
	}
}

// stamp gives the written conditions their times, as the API server's client does.
func stamp(before, after *taints.Node, written []taints.NodeCondition, now time.Time) {
	for _, c := range before.Transitions(written) {
		at := after.Condition(c.Type)
		at.LastHeartbeatTime, at.LastTransitionTime = now, c.LastTransitionTime
		if at.LastTransitionTime.IsZero() {
			at.LastTransitionTime = now
		}
	}
}

func (w *world) happen(what string) {
	w.happened, w.at = append(w.happened, what), append(w.at, w.now)
}

// told lists what happened, each with its time unless that is the time at
// which the line begins or of what was told just before.
func (w *world) told() string {
	if len(w.happened) == 0 {
		return "nothing"
	}
	var b strings.Builder
	last := w.begun
	for i, what := range w.happened {
		if i > 0 {
			b.WriteString(", ")
		}
		if w.at[i] != last {
			last = w.at[i]
			b.WriteString(clockTime(last) + " ")
		}
		b.WriteString(what)
	}
	w.happened, w.at = nil, nil
	return b.String()
}

// clockTime writes 2m0s as 2m and 24h0m0s as 24h.
func clockTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func difference(before, after []taints.Taint) string {
	var b strings.Builder
	for _, t := range before {
		if !(&taints.Node{Taints: after}).Has(t.Pair()) {
			fmt.Fprintf(&b, " -%s", t.Pair())
		}
	}
	for _, t := range after {
		if !(&taints.Node{Taints: before}).Has(t.Pair()) {
			fmt.Fprintf(&b, " +%s", t.String())
		}
	}
	if b.Len() == 0 {
		return " record"
	}
	return b.String()
}

// short is how the scenarios name a condition: one that others report by its type.
func short(c probes.Condition) string {
	return cmp.Or(map[probes.Condition]string{
		probes.MemoryPressure: "memory", probes.DiskPressure: "disk",
		probes.PIDPressure: "pid", probes.NetworkUnavailable: "network",
	}[c], string(c))
}

// conditionNamed returns the condition of a configuration that the scenarios call so.
func conditionNamed(cfg *config.Config, word string) (name probes.Condition, found bool) {
	for _, c := range cfg.Names() {
		if short(c) == word {
			return c, true
		}
	}
	return "", false
}

// line plays one line. "TIME EVENTS" happens once, "FROM..TO every INTERVAL
// EVENTS" again and again.
func (w *world) line(text string) error {
	first, rest, _ := strings.Cut(text, " ")
	from, to, repeated := strings.Cut(first, "..")
	begin, err := time.ParseDuration(from)
	if err != nil {
		return err
	}
	if begin < w.now {
		return fmt.Errorf("%s is before %s, when the line above ended", clockTime(begin), clockTime(w.now))
	}
	w.begun, w.now = begin, begin
	if !repeated {
		return w.events(rest)
	}
	end, err := time.ParseDuration(to)
	if err != nil {
		return err
	}
	rest, found := strings.CutPrefix(rest, "every ")
	interval, rest, _ := strings.Cut(rest, " ")
	every, err := time.ParseDuration(interval)
	if !found || err != nil || every <= 0 {
		return fmt.Errorf("FROM..TO needs \"every INTERVAL\"")
	}
	for at := begin; at <= end; at += every {
		w.now = at
		if err := w.events(rest); err != nil {
			return err
		}
	}
	return nil
}

// events plays events that happen at the same time, separated by semicolons.
func (w *world) events(text string) error {
	for one := range strings.SplitSeq(text, "; ") {
		words := strings.Fields(one)
		if len(words) == 0 {
			return fmt.Errorf("nothing happens")
		}
		if err := w.event(words); err != nil {
			return err
		}
	}
	return nil
}

// event is one of: CONDITION SAMPLE; one of the verbs below.
func (w *world) event(words []string) error {
	if c, found := conditionNamed(w.cfg, words[0]); found {
		o, err := observation(c, strings.Join(words[1:], " "))
		if err != nil {
			return err
		}
		if w.retouch != nil {
			w.retouch(&o)
		}
		w.sample(o)
		return nil
	}
	act, ok := allVerbs()[words[0]]
	if !ok {
		return fmt.Errorf("no such event; testdata/README.md lists them")
	}
	if err := act(w, append(words[1:], "", "", "")); err != nil {
		return err
	}
	w.step(decide.Inputs{})
	return nil
}

func observation(c probes.Condition, sample string) (probes.Observation, error) {
	o := probes.Observation{Condition: c, Reason: "Seen", Message: sample}
	if at := strings.LastIndexByte(sample, ' '); at > 0 && sample[at+1] >= 'A' && sample[at+1] <= 'Z' {
		sample, o.Reason = sample[:at], sample[at+1:]
	}
	if number, found := strings.CutPrefix(sample, "severity "); found {
		var err error
		o.Level = probes.OK
		o.Severity, err = strconv.Atoi(number)
		return o, err
	}
	if number, found := strings.CutPrefix(sample, "bad "); found {
		var err error
		o.Level = probes.Degraded
		o.Severity, err = strconv.Atoi(number)
		return o, err
	}
	switch sample {
	case "ok":
		o.Level = probes.OK
	case "near":
		o.Level, o.Hysteresis = probes.OK, true
	case "never well":
		o.Level, o.NeverHealthy = probes.OK, []string{"Other", o.Reason}
	case "bad":
		o.Level = probes.Degraded
	case "certain":
		o.Level, o.Certain = probes.Degraded, true
	case "critical":
		o.Level = probes.Critical
	case "certain critical":
		o.Level, o.Certain = probes.Critical, true
	case "unknown":
		o.Level = probes.Unknown
	case "suspects":
		o.Level, o.Suspicion, o.Reason = probes.Unknown, true, "PeersUnreachable"
	default:
		return o, fmt.Errorf("sample %q is not ok, near, never well, bad, certain, critical, certain critical, unknown or suspects", sample)
	}
	return o, nil
}

var allVerbs = sync.OnceValue(verbs)

func verbs() map[string]func(w *world, args []string) error {
	return map[string]func(w *world, args []string) error{
		"restart": func(w *world, args []string) error { return w.restart(args[0]) },
		"reboot":  func(w *world, _ []string) error { w.reboot(); return nil },
		"heartbeat": func(w *world, _ []string) error {
			w.step(decide.Inputs{Refresh: true})
			return nil
		},
		"wall": func(w *world, args []string) error {
			d, err := time.ParseDuration(args[0])
			w.wall += d
			return err
		},
		"api": func(w *world, args []string) error {
			return choose(args[0], "up", "down", func(up bool) {
				if w.apiUp = up; up {
					w.known, w.answersSince = w.read, w.clock()
				}
			})
		},
		"policy": func(w *world, args []string) error {
			if args[0] == "changes" {
				w.facts.KeepVersion += "1"
				return nil
			}
			return choose(args[0], "present", "absent", func(present bool) { w.facts.KeepPolicy = present })
		},
		"slot": func(w *world, args []string) error {
			slot, known := map[string]decide.Slot{"held": decide.SlotHeld, "none": decide.SlotNone, "unknown": decide.SlotUnknown}[args[0]]
			if !known {
				return fmt.Errorf("%q is not held, none or unknown", args[0])
			}
			w.slot = slot
			return nil
		},
		"writes": func(w *world, args []string) error {
			return choose(args[0], "wait", "land", func(wait bool) { w.writesWait = wait })
		},
		"write":   (*world).write,
		"answer":  (*world).hearAnswer,
		"watch":   (*world).watch,
		"forever": (*world).forever,
		"peers":   (*world).hear,
		"others":  (*world).others,
		"record":  (*world).editRecord,
		"kubelet": (*world).kubelet,
		"delete":  func(w *world, _ []string) error { w.known = nil; return nil },
		"register": func(w *world, args []string) error {
			taint, err := parseTaint(args[0])
			w.setNode(&taints.Node{Name: "host", UID: w.node.UID + "1", ResourceVersion: "1", Taints: []taints.Taint{taint}})
			return err
		},
		"recreate": func(w *world, _ []string) error { w.create(w.node.UID + "1"); return nil },
		"config":   (*world).configure,
		"thresholds": func(w *world, args []string) error {
			c, found := conditionNamed(w.cfg, args[0])
			if !found {
				return fmt.Errorf("thresholds of %q: no such condition", args[0])
			}
			w.state = w.state.Forget(c)
			return nil
		},
		"condition": (*world).showCondition,
		"repair":    (*world).showRepair,
		"node":      func(w *world, _ []string) error { w.showNode(); return nil },
	}
}

// restart starts the agent anew: "", or "stale", with the version of the Node before the
// newest, as an API server may answer whose cache is behind.
func (w *world) restart(how string) error {
	w.start(w.boot.ID)
	if how == "stale" {
		if w.previous == nil || w.previous.UID != w.node.UID {
			return fmt.Errorf("there is no version before this one")
		}
		w.known = w.previous
	}
	return nil
}

// write says what becomes of a write that waits: "lands", "lands unheard" (the answer is
// lost), or "of the past lands", that of a process which ended.
func (w *world) write(args []string) error {
	how := strings.TrimSpace(strings.Join(args, " "))
	switch {
	case how == "of the past lands" && w.late != nil:
		if w.node == w.late.base.Node { // its resourceVersion is the newest
			w.take(w.late)
			if !w.watchWaits {
				w.known = w.read
			}
		}
		w.late = nil
	case how == "lands" && w.job != nil:
		w.land(true)
	case how == "lands unheard" && w.job != nil:
		w.land(false)
		if !w.watchWaits {
			w.known = w.read
		}
	default:
		return fmt.Errorf("write %q: it is none, or not one of: lands, lands unheard, of the past lands", how)
	}
	return nil
}

// hearAnswer says when the answer of a write is heard: the write that waits lands, and its answer
// "waits", or the answer "arrives".
func (w *world) hearAnswer(args []string) error {
	switch how := args[0]; {
	case how == "waits" && w.job != nil && w.answer == nil:
		before := w.known
		if w.take(w.job) != hasLanded {
			return errors.New("the write that waits does not land")
		}
		w.sent, w.job, w.answer, w.answerTo = w.job, nil, w.read, before
		if !w.watchWaits {
			w.known = w.read
		}
	case how == "arrives" && w.answer != nil:
		answer := w.answer
		if w.answer, w.sent = nil, nil; w.known == w.answerTo {
			w.known = answer
		}
		w.step(decide.Inputs{Written: w.job == nil, Answer: answer.Node})
		if w.job != nil && !w.writesWait {
			w.land(true)
		}
	default:
		return fmt.Errorf("answer %q: there is none, or not one of: waits, arrives", how)
	}
	return nil
}

// isSent reports whether the write whose answer waits does all that is desired now.
func (w *world) isSent(desired taints.Desired) bool {
	sent := w.sent.desired
	if _, differs := desired.Differs(w.known.Node); !differs {
		sent.Owned = desired.Owned
	}
	return reflect.DeepEqual(sent, desired)
}

// watch says when changes of the Node are seen: "waits", "goes on".
func (w *world) watch(args []string) error {
	return choose(args[0], "waits", "goes", func(waits bool) {
		if w.watchWaits = waits; !waits && w.apiUp {
			w.known = w.read
		}
	})
}

// hear is one round of the peers: COUNT, all well; COUNT CONDITION BAD, so many of
// them with that condition; COUNT CONDITION BAD ZONEBAD/ZONECOUNT, those of the own zone.
// unread: their list is not read yet.
func (w *world) hear(args []string) error {
	if args[0] == "unread" {
		w.peers = decide.Peers{Known: -1}
		return nil
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	shares := map[probes.Condition]decide.Share{}
	for _, c := range names() {
		share := decide.Share{Asked: count}
		if args[1] == short(c) {
			if share.Bad, err = strconv.Atoi(args[2]); err != nil {
				return err
			}
			if args[3] != "" { // those of the zone
				if _, err := fmt.Sscanf(args[3], "%d/%d", &share.ZoneBad, &share.ZoneAsked); err != nil {
					return err
				}
			}
		}
		shares[c] = share
	}
	w.peers = decide.Peers{Known: count, Rounds: w.peers.Rounds + 1, Shares: shares}
	return nil
}

// choose passes on which of two words was given.
func choose(word, yes, no string, use func(bool)) error {
	if word != yes && word != no {
		return fmt.Errorf("%q is neither %s nor %s", word, yes, no)
	}
	use(word == yes)
	return nil
}

// others changes the Node as anybody else might: remove PAIR, remove PAIR by FIELDMANAGER,
// add PAIR, annotate KEY=VALUE, annotate KEY- (removes it).
func (w *world) others(args []string) error {
	node := w.node.Clone()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	switch args[0] {
	case "remove", "add":
		taint, err := parseTaint(args[1])
		if err != nil {
			return err
		}
		pair := taint.Pair()
		if node.Has(pair) != (args[0] == "remove") {
			return fmt.Errorf("cannot %s %s: the node has %v", args[0], pair, node.Taints)
		}
		if args[0] == "add" {
			node.Taints = append(node.Taints, taint)
			break
		}
		node.Taints, _, _ = taints.Plan(node.Taints, []taints.Pair{pair}, nil)
		node.LastWriter = args[3]
	case "annotate":
		key, value, found := strings.Cut(strings.TrimSpace(strings.Join(args[1:], " ")), "=")
		if found {
			node.Annotations[key] = value
		} else {
			delete(node.Annotations, strings.TrimSuffix(key, "-"))
		}
	case "unset":
		node.Conditions = slices.DeleteFunc(node.Conditions, func(c taints.NodeCondition) bool {
			return c.Type == args[1] || args[1] == short(probes.Condition(strings.TrimPrefix(c.Type, "Host")))
		})
	case "set-repair":
		node.Condition(decide.RepairType).Status = taints.ConditionStatus(args[1])
	case "label":
		node.Labels = map[string]string{args[1]: ""}
	case "cordon", "uncordon":
		node.IsUnschedulable = args[0] == "cordon"
	default:
		return fmt.Errorf("others %q", args[0])
	}
	w.setNode(node)
	return nil
}

// parseTaint reads KEY[=VALUE]:EFFECT.
func parseTaint(text string) (taints.Taint, error) {
	var pair taints.Pair
	if err := pair.UnmarshalText([]byte(text)); err != nil {
		return taints.Taint{}, err
	}
	key, value, _ := strings.Cut(pair.Key, "=")
	return taints.Taint{Key: key, Value: value, Effect: pair.Effect}, nil
}

// editRecord forges a part of the record: PATH=JSON, the path with dots.
func (w *world) editRecord(args []string) error {
	path, value, _ := strings.Cut(strings.TrimSpace(strings.Join(args, " ")), "=")
	var whole map[string]any
	decoder := json.NewDecoder(strings.NewReader(w.node.Annotations[taints.RecordAnnotation]))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err != nil {
		return err
	}
	steps := strings.Split(path, ".")
	part := whole
	for _, step := range steps[:len(steps)-1] {
		next, ok := part[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			part[step] = next
		}
		part = next
	}
	part[steps[len(steps)-1]] = json.RawMessage(value)
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return w.others([]string{"annotate", taints.RecordAnnotation + "=" + string(text)})
}

// kubelet sets a condition of the kubelet's: TYPE STATUS.
func (w *world) kubelet(args []string) error {
	node := w.node.Clone()
	desired := taints.Desired{Conditions: []taints.NodeCondition{{Type: args[0], Status: taints.ConditionStatus(args[1])}}}
	w.setNode(desired.ApplyTo(node))
	return nil
}

// configure changes the configuration.
func (w *world) configure(args []string) error {
	if known, found := w.memo.configuration(w.cfg, args); found {
		w.cfg, w.policy = known.cfg, known.policy
		return nil
	}
	before, cfg := w.cfg, fixtures.CloneConfig(w.cfg)
	switch args[0] {
	case "critical": // CONDITION: its built-in rule for Critical too
		cfg.Eviction.Slots = 1
		for _, rule := range cfg.Policy().BuiltInRules() {
			if rule.Level == probes.Critical && short(rule.Condition) == args[1] {
				cfg.Rules = append(cfg.Rules, rule)
			}
		}
	case "drop": // CONDITION: none of its rules
		cfg.Rules = slices.DeleteFunc(cfg.Rules, func(r decide.Rule) bool { return short(r.Condition) == args[1] })
	case "rule": // CONDITION TAINT: for Degraded, in place of the one it has
		taint, err := parseTaint(args[2])
		if err != nil {
			return err
		}
		cfg.Rules = slices.DeleteFunc(cfg.Rules, func(r decide.Rule) bool { return short(r.Condition) == args[1] && r.IsGraver() })
		for i, rule := range cfg.Rules {
			if short(rule.Condition) == args[1] && rule.Level == probes.Degraded {
				cfg.Rules[i].Taint = decide.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}
			}
		}
	case "clear-after": // LEAST MOST
		least, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		most, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		for _, c := range cfg.Conditions {
			debounce := &c.Common().Debounce
			debounce.ClearAfter.Duration, debounce.MaxClearAfter.Duration = least, most
		}
	case "critical-after": // LEAST
		least, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		for _, c := range cfg.Conditions {
			c.Common().Debounce.CriticalAfter.Duration = least
		}
	case "eviction-interval": // LEAST
		least, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		cfg.Eviction.Interval.Duration = least
	case "control-plane-evicts":
		cfg.Eviction.ControlPlane = true
	case "no-fleet-brake":
		cfg.FleetBrake.Percent = 0
	case "value-from-severity": // CONDITION: of the rule for Degraded
		for i, rule := range cfg.Rules {
			if short(rule.Condition) == args[1] && rule.Level == probes.Degraded {
				cfg.Rules[i].Taint.Value = "50"
				for _, rule.Severity = range []int{75, 100} {
					rule.Taint.Value = strconv.Itoa(rule.Severity)
					cfg.Rules = append(cfg.Rules, rule)
				}
			}
		}
	case "soft": // CONDITION SEVERITY TAINT, or none
		if cfg.SoftRules = nil; args[1] != "" {
			severity, err := strconv.Atoi(args[2])
			taint, errTaint := parseTaint(args[3])
			if err = errors.Join(err, errTaint); err != nil {
				return err
			}
			if name, found := conditionNamed(cfg, args[1]); found {
				cfg.SoftRules = []decide.Rule{{Condition: name, Level: probes.OK, Severity: severity, Taint: decide.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}}}
			}
		}
	case "maintenance": // TYPE, or none
		cfg.Maintenance.Conditions = strings.Fields(args[1])
	case "also": // CONDITION LEVEL TAINT, and REASONS or -, and manual
		if err := addRule(cfg, args[1:]); err != nil {
			return err
		}
	case "reports": // TYPE: a condition that others report
		more, err := config.HostSchema().Decode([]byte("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nconditions: [{type: " + args[1] + "}]\n"))
		if err != nil {
			return err
		}
		cfg.Conditions = append(cfg.Conditions, more.Conditions[len(names())])
	case "mode": // MODE, or MODE CONDITION
		if args[2] == "" {
			cfg.Mode = decide.Mode(args[1])
		} else {
			name, _ := conditionNamed(cfg, args[2])
			c, _ := cfg.Condition(name)
			c.Common().Mode = decide.Mode(args[1])
		}
	case "startup": // KEY
		cfg.Startup.Taint = args[1]
	case "reload": // as it is
	case "default":
		cfg = config.Default()
	case "repair-after": // TIME
		after, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		cfg.Repair.After.Duration = after
	case "budget": // BURST INTERVAL
		burst, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		cfg.WriteBudget.Burst = burst
		if cfg.WriteBudget.Interval.Duration, err = time.ParseDuration(args[2]); err != nil {
			return err
		}
	default:
		return fmt.Errorf("config %q", args[0])
	}
	w.cfg, w.policy = cfg, cfg.Policy()
	if cfg.WriteBudget != config.Default().WriteBudget { // both buckets are as the scenario says
		w.policy.Upkeep = w.policy.WriteBudget
	}
	err := cfg.Validate().ToAggregate()
	if err == nil {
		w.memo.configured(before, args, w)
	}
	return err
}

// addRule adds a rule: CONDITION LEVEL TAINT REASONS CLEAR.
func addRule(cfg *config.Config, args []string) error {
	taint, err := parseTaint(args[2])
	if err != nil {
		return err
	}
	rule := decide.Rule{Taint: decide.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}, Clear: decide.Clearing(args[4])}
	rule.Condition, _ = conditionNamed(cfg, args[0])
	if args[3] != "" && args[3] != "-" {
		rule.Reasons = strings.Split(args[3], ",")
	}
	if err := rule.Level.UnmarshalText([]byte(args[1])); err != nil {
		return err
	}
	if rule.Level == probes.Critical {
		cfg.Eviction.Slots = 1
	}
	cfg.Rules = append(cfg.Rules, rule)
	return nil
}

// showCondition tells one of the Node's conditions: its status and message.
func (w *world) showCondition(args []string) error {
	c, _ := conditionNamed(w.cfg, args[0])
	shown := w.node.Condition("Host" + string(c))
	if shown == nil {
		return fmt.Errorf("the node has no condition of %q", args[0])
	}
	w.happen(fmt.Sprintf("%s %s: %s", shown.Status, shown.Reason, shown.Message))
	return nil
}

// showRepair tells the Node's condition for repairers.
func (w *world) showRepair(_ []string) error {
	shown := w.node.Condition(decide.RepairType)
	if shown == nil {
		return fmt.Errorf("the node has no %s", decide.RepairType)
	}
	w.happen(fmt.Sprintf("%s %s: %s", shown.Status, shown.Reason, shown.Message))
	return nil
}

// showNode tells the Node's taints and the held annotation.
func (w *world) showNode() {
	var pairs []string
	for _, t := range w.node.Taints {
		pairs = append(pairs, t.String())
	}
	w.happen("taints [" + strings.Join(pairs, " ") + "] held " + strconv.Quote(w.node.Annotations[taints.HeldAnnotation]))
}
