package decide_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The enumeration, `make exhaust`: all sequences of events up to some depth, from many
// states. Each state is visited once, the judge looks at each step, and for some states it
// is asked what becomes of them when nothing changes any more.
var (
	exhaustDepth   = flag.Int("exhaust-depth", 2, "how many events, at most, follow each start")
	exhaustFor     = flag.Duration("exhaust-for", 0, "how long each start of each alphabet may take; 0: until the depth is reached")
	exhaustMost    = flag.Int("exhaust-patience", 60, "how many times as long a start of a deep alphabet may take, at most")
	exhaustResults = flag.String("exhaust-results", "", "the file into which the results are written")
	exhaustFirst   = flag.Bool("exhaust-first", false, "end with the first failure, which is not made shorter")
	exhaustOnly    = flag.String("exhaust-only", "", "the alphabets of whose names this is a part")
)

// A sequence is written as events of the scenarios, and steps of time as "+1m".

// origin is a state to begin with, and how a scenario gets there.
type origin struct {
	name   string
	events []string
}

const (
	kept    = "node.kubernetes.io/memory-pressure:NoSchedule"
	evicts2 = "node.kubernetes.io/memory-pressure:NoExecute"
	stand   = "taintlet.dev/memory-pressure:NoSchedule"

	byPerson     = "others remove " + kept + " by kubectl-taint"
	byController = "others remove " + kept + " by kube-controller-manager"
)

// starts are the states to begin with. The first restart makes an agent whose other probes
// have no sample yet, so that it writes no conditions: they have an alphabet of their own.
func starts() []origin {
	from := func(name string, events ...string) origin {
		return origin{name, append([]string{"restart"}, events...)}
	}
	tainted := []string{"memory certain"}
	evicting := []string{"config critical memory", "memory certain critical", "+1m", "memory critical"}
	with := func(events []string, more ...string) []string { return slices.Concat(events, more) }
	return []origin{
		from("healthy"),
		from("suspected", "memory bad"),
		from("degraded", tainted...),
		from("degraded by a stand-in", with([]string{"policy absent"}, tainted...)...),
		from("recovering", with(tainted, "memory ok", "+1m", "memory ok")...),
		from("damped", with(tainted, "memory ok", "+2m", "memory ok", "memory certain")...),
		from("clear waits for a token", with([]string{"config budget 1 10m"}, with(tainted, "memory ok", "+2m", "memory ok", "memory certain", "memory ok", "+2m", "memory ok", "+2m", "memory ok")...)...),
		from("critical without a slot", with([]string{"slot none"}, evicting...)...),
		from("evicting", evicting...),
		from("evicting, slot unknown", with(evicting, "slot unknown")...),
		from("vetoed", with(evicting, "others remove "+evicts2)...),
		from("policy fails", with(tainted, byController)...),
		from("contested", with(tainted, byPerson, "+10s", byPerson)...),
		from("contested stand-in", with([]string{"policy absent"}, with(tainted, "others remove "+stand, "+10s", "others remove "+stand)...)...),
		from("paused and tainted", with(tainted, "others annotate taintlet.dev/paused=true")...),
		from("paused and bad", with([]string{"others annotate taintlet.dev/paused=true"}, tainted...)...),
		from("pause waits for a token to end", with([]string{"config budget 1 10m", "others annotate taintlet.dev/paused=true"}, with(tainted, "others annotate taintlet.dev/paused-", "others annotate taintlet.dev/paused=true", "memory bad", "others annotate taintlet.dev/paused-")...)...),
		from("maintenance", with([]string{"config maintenance Drained", "kubelet Drained True"}, tainted...)...),
		from("rule dropped", with(tainted, "config drop memory")...),
		from("own key, dropped, restarted", with([]string{"config rule memory example.com/low:NoSchedule"}, with(tainted, "api down", "config drop memory", "restart", "api up")...)...),
		from("clears at once", with([]string{"config clear-after 0s 0s"}, tainted...)...),
		from("critical, slot lost before the write", "config critical memory", "memory certain critical", "+1m", "api down", "memory critical", "slot unknown", "api up"),
		from("the kubelet's condition", with(tainted, "kubelet MemoryPressure True")...),
		from("restarted", with(tainted, "restart")...),
		from("written and not heard", with([]string{"writes wait"}, with(tainted, "write lands unheard")...)...),
	}
}

// alphabet is a set of events that happen in every order.
type alphabet struct {
	name   string
	events []string
	// depth is how much deeper it goes than the flag says, or less deep. patience is how
	// many times as long it may take; 0: once.
	depth, patience int
}

// alphabets are small sets about one subject each, for depth, and all events together.
func alphabets() []alphabet {
	all := []alphabet{
		{name: "samples", events: []string{"memory ok", "memory near", "memory bad", "memory certain", "memory critical", "memory unknown", "+1m", "+2m", "+12m"}},
		{name: "writes", events: []string{"memory certain", "memory ok", "+2m", "writes wait", "write lands", "write lands unheard", "write of the past lands", "restart", "others remove " + kept}},
		{name: "late answers", events: []string{"memory certain", "memory ok", "+2m", "writes wait", "answer waits", "answer arrives", "watch waits", "watch goes on", "others remove " + kept}},
		{name: "time travel", events: []string{"memory certain", "memory ok", "+2m", "restart", "restart stale", "watch waits", "watch goes on", "others remove " + kept}},
		{name: "others", events: []string{"memory bad", "memory ok", "+1m", "+10m", "others remove " + kept, "others remove " + stand, "others add " + kept, "others add " + stand, "kubelet MemoryPressure True", "kubelet MemoryPressure False"}},
		{name: "people", events: []string{"memory certain", "memory ok", "+2m", "+10m", "others annotate taintlet.dev/paused=true", "others annotate taintlet.dev/paused-", "others remove " + kept, "others remove " + evicts2, "restart"}},
		{name: "newer release", events: []string{"memory certain", "memory ok", "+2m", `others annotate taintlet.dev/record={"version":2}`, "others annotate taintlet.dev/record-", "restart"}},
		{name: "observe", events: []string{"memory certain", "memory ok", "+2m", "+10m", "others annotate taintlet.dev/mode=Observe", "others annotate taintlet.dev/mode-", "others remove " + kept, "restart"}},
		{name: "eviction", events: []string{"config critical memory", "memory critical", "memory ok", "memory unknown", "+1m", "+1h", "slot none", "slot held", "slot unknown", "others remove " + evicts2, "restart"}},
		{name: "cluster", events: []string{"memory certain", "memory ok", "+2m", "policy absent", "policy present", "config drop memory", "config default", "config rule memory example.com/low:NoSchedule", "restart", "others remove " + kept}},
		{name: "policy fails", events: []string{"memory certain", "memory ok", "+2s", "+2m", "policy changes", "policy absent", "policy present", "restart", byController, byPerson, "others remove " + kept, "others annotate taintlet.dev/paused=true", "others annotate taintlet.dev/paused-"}},
		{name: "two conditions", events: []string{"memory certain", "memory ok", "disk certain", "disk ok", "+2m", "+10m", "others remove " + kept, "restart"}},
		{name: "conditions written", events: []string{"pid ok", "network ok", "disk ok", "memory certain", "memory ok", "heartbeat", "+1m", "+2m", "restart"}},
	}
	all = append(all,
		alphabet{name: "deep: a life", patience: 20, events: []string{"memory certain", "memory ok", "+10m", "restart"}},
		alphabet{name: "deep: crashes", events: []string{"memory certain", "memory ok", "+2m", "writes wait", "write lands unheard", "restart"}},
		alphabet{name: "deep: removals", events: []string{"memory certain", "+1m", "+10m", "others remove " + kept, "others remove " + stand}, patience: 60},
		alphabet{name: "deep: pauses", events: []string{"memory certain", "memory ok", "+10m", "others annotate taintlet.dev/paused=true", "others annotate taintlet.dev/paused-"}, patience: 60},
		alphabet{name: "deep: slots", events: []string{"memory critical", "memory ok", "+10m", "slot none", "slot held"}, patience: 60},
	)
	every := alphabet{name: "every event", depth: -1}
	for _, a := range all {
		for _, e := range a.events {
			if !slices.Contains(every.events, e) {
				every.events = append(every.events, e)
			}
		}
	}
	every.events = append(every.events, "+24h", "+10s", "writes land", "api down", "api up", "reboot", "recreate", "memory certain critical",
		"others add example.com/x:NoSchedule", "others annotate taintlet.dev/paused=MemoryPressure",
		"kubelet Drained True", "kubelet Drained False", "config maintenance Drained")
	return append(all, every)
}

// clone returns a world that goes its own way.
func (w *world) clone() *world {
	twin := *w
	twin.happened, twin.notices, twin.at = nil, nil, nil
	return &twin
}

// happens lets one event happen; false where it cannot.
func (w *world) happens(event string) (isPossible bool) {
	defer func() {
		if r := recover(); r != nil {
			w.judge.fail("%v", r)
			isPossible = true
		}
	}()
	if time, isTime := strings.CutPrefix(event, "+"); isTime {
		w.now += duration(time)
		return true
	}
	words := strings.Fields(event)
	if words[0] == "config" {
		before := w.cfg
		return w.event(words) == nil && !reflect.DeepEqual(before, w.cfg)
	}
	return w.event(words) == nil
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// quietWorld is a world that tells nothing.
func quietWorld(memo *memo) *world {
	w := newWorld()
	w.isQuiet, w.memo = true, memo
	return w
}

// begin returns the world of a start.
func (s origin) begin(t *testing.T, memo *memo) *world {
	t.Helper()
	w := quietWorld(memo)
	for _, event := range s.events {
		if !w.happens(event) {
			t.Fatalf("%s: %q is not possible", s.name, event)
		}
	}
	return w
}

// search walks through all sequences of an alphabet from one start, the shorter ones first.
type search struct {
	alphabet alphabet
	keyer    *keyer
	seen     map[uint64]bool // the keys of the states
	until    time.Time       // zero: no end
	// links are how each state was reached.
	links []link
	// reached is the depth up to which no sequence is missing. steps is how many events
	// happened, endings of how many states it was asked what becomes of them.
	reached, steps, endings int
	// failing is the shortest sequence that the judge did not let pass.
	failing []string
	verdict string
}

// link is a state, reached from another one by an event.
type link struct {
	before int32 // negative: none
	event  string
}

// found is a state from which to go on.
type found struct {
	world *world
	link  int32
}

// liveEvery is for how many states one is asked what becomes of it.
const liveEvery = 100

// run searches down to a depth, or until the time is over.
func (s *search) run(w *world, depth int) {
	frontier := []found{{w, -1}}
	s.seen[s.keyer.key(w)] = true
	for s.reached < depth && len(frontier) > 0 {
		var next []found
		for i, from := range frontier {
			if frontier[i].world = nil; !s.until.IsZero() && time.Now().After(s.until) {
				return
			}
			if next = s.follow(from, next); s.verdict != "" {
				return
			}
		}
		s.reached++
		frontier = next
	}
	s.reached = depth // there are no more states
}

// follow lets each event of the alphabet happen, and adds the states that are new.
func (s *search) follow(from found, next []found) []found {
	for _, event := range s.alphabet.events {
		w := from.world.clone()
		if !w.happens(event) {
			continue
		}
		s.steps++
		if w.judge.verdict != "" {
			s.fail(w.judge.verdict, from.link, event)
			return next
		}
		key := s.keyer.key(w)
		if s.seen[key] {
			continue
		}
		s.seen[key] = true
		s.links = append(s.links, link{from.link, event})
		at := int32(len(s.links) - 1)
		if next = append(next, found{w, at}); at%liveEvery == 0 && !s.lives(w, at) {
			return next
		}
	}
	return next
}

// lives asks what becomes of a state when nothing changes any more.
func (s *search) lives(w *world, at int32) bool {
	s.endings++
	for _, kind := range []string{"ok", "bad", "critical"} {
		end := w.clone()
		end.happens("forever " + kind)
		if end.judge.verdict != "" {
			s.fail(end.judge.verdict, at, "forever "+kind)
			return false
		}
	}
	return true
}

func (s *search) fail(verdict string, at int32, last string) {
	s.verdict, s.failing = verdict, []string{last}
	for ; at >= 0; at = s.links[at].before {
		s.failing = append(s.failing, s.links[at].event)
	}
	slices.Reverse(s.failing)
}

// fails plays events and returns what the judge says of them.
func fails(events []string) string { return failsAfter(quietWorld(nil), events) }

// failsAfter is that for a world in which something has happened before.
func failsAfter(w *world, events []string) string {
	for _, event := range events {
		if !w.happens(event) {
			return ""
		}
		if w.judge.verdict != "" {
			return w.judge.verdict
		}
	}
	return ""
}

// shortest leaves out the events without which the rest still fails, many at a time as long
// as that goes.
func shortest(events []string, fails func([]string) string) []string {
	for size := max(1, len(events)/2); ; size = max(1, size/2) {
		isSmaller := false
		for i := 0; i < len(events); {
			if fewer := slices.Delete(slices.Clone(events), i, min(i+size, len(events))); fails(fewer) != "" {
				events, isSmaller = fewer, true
			} else {
				i += size
			}
		}
		if size == 1 && !isSmaller {
			return events
		}
	}
}

// scenario writes events as a file of testdata. Played there, it fails.
func scenario(origin, verdict string, events []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Found by %s: %s.\n", origin, verdict)
	now := time.Duration(0)
	for _, event := range events {
		if step, isTime := strings.CutPrefix(event, "+"); isTime {
			now += duration(step)
			continue
		}
		fmt.Fprintf(&b, "%s %s\n", clockTime(now), event)
	}
	return b.String()
}

// Every sequence of events leaves the Node as the judge wants it.
func TestExhaust(t *testing.T) {
	results, all := &strings.Builder{}, starts()
	began, total := time.Now(), [3]int{}
	for _, a := range alphabets() {
		if !strings.Contains(a.name, *exhaustOnly) {
			continue
		}
		var depths []int
		sum := [3]int{}
		for _, begin := range all {
			s := a.from(t, begin)
			depths = append(depths, s.reached)
			for i, n := range []int{s.steps, len(s.links), s.endings} {
				sum[i] += n
				total[i] += n
			}
			if s.verdict != "" && *exhaustFirst {
				t.Fatalf("%s, from %s: %s", a.name, begin.name, s.verdict)
			}
			if s.verdict != "" {
				events := shortest(slices.Concat(begin.events, s.failing), fails)
				t.Errorf("%s, from %s: %s\n%s", a.name, begin.name, s.verdict, scenario("make exhaust", fails(events), events))
			}
		}
		slices.Sort(depths)
		fmt.Fprintf(results, "| %s | %d | %d | %d | %d | %d | %d |\n", a.name, len(a.events), depths[0], depths[len(depths)-1], sum[0], sum[1], sum[2])
	}
	fmt.Fprintf(results, "| all | | | | %d | %d | %d |\n", total[0], total[1], total[2])
	text := fmt.Sprintf("Up to %d events after each of %d starts, %s for each, in %s on %s:\n\n%s%s", *exhaustDepth, len(all), *exhaustFor,
		time.Since(began).Round(time.Second), time.Now().UTC().Format(time.DateOnly),
		"| alphabet | events | least depth finished | most | steps | states | endings |\n|---|---|---|---|---|---|---|\n", results)
	t.Log(text)
	if *exhaustResults != "" && !t.Failed() {
		if err := os.WriteFile(*exhaustResults, []byte(text), 0o644); err != nil { //nolint:gosec // read by everybody
			t.Fatal(err)
		}
	}
}

// from searches an alphabet from one start.
func (a alphabet) from(t *testing.T, begin origin) *search {
	t.Helper()
	s := &search{alphabet: a, seen: map[uint64]bool{}}
	s.keyer = &keyer{plans: map[reflect.Type][]how{}, isStale: slices.Contains(a.events, "restart stale"), isLate: slices.Contains(a.events, "write of the past lands")}
	if *exhaustFor > 0 {
		s.until = time.Now().Add(*exhaustFor * time.Duration(max(1, min(a.patience, *exhaustMost))))
	}
	s.run(begin.begin(t, newMemo()), max(1, *exhaustDepth+a.depth))
	return s
}
