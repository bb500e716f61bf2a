package sampling

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

var update = flag.Bool("update", false, "write what becomes of starts and overloads into README.md")

// starts are courses that are ordinary life.
func starts(t *testing.T) []course {
	memory := func(name, host string, at func(time.Duration) moment) course {
		return course{name: name, host: host, condition: probes.MemoryPressure, at: at, lasts: 3 * time.Minute}
	}
	tasks := func(name string, at func(time.Duration) moment) course {
		return course{name: name, host: "32,768 tasks", condition: probes.PIDPressure, at: at, lasts: 3 * time.Minute}
	}
	all := []course{
		memory("a job takes 2 GiB in 2 s, every 150 s: 17.6 to 9.6 % available", "25 GiB", again(150370*time.Millisecond, givesBack(40*time.Second, takes(25, 4.4, 2.4, 2*time.Second)))),
		memory("a job takes 3 GiB in 3 s, every 5 min: 24 to 12 %", "25 GiB", again(300370*time.Millisecond, givesBack(100*time.Second, takes(25, 6, 3, 3*time.Second)))),
		memory("2 GiB touched in 1 s: 17 to 9 %", "25 GiB", takes(25, 4.25, 2.25, time.Second)),
		memory("a JVM touches 0.9 GiB in 0.5 s: 20 to 8 %", "8 GiB", takes(8, 1.6, 0.65, 500*time.Millisecond)),
		memory("a JVM touches 1 GiB in 1 s: 31 to 19 %", "8 GiB", takes(8, 2.5, 1.5, time.Second)),
		memory("a JVM touches 4 GiB in 2 s: 40 to 15 %", "16 GiB", takes(16, 6.4, 2.4, 2*time.Second)),
		memory("a JVM touches 6 GiB in 8 s: 37 to 18 %", "32 GiB", takes(32, 11.86, 5.86, 8*time.Second)),
		memory("a JVM touches 8 GiB in 4 s: 25 to 12 %", "64 GiB", takes(64, 16, 8, 4*time.Second)),
		memory("a JVM touches 16 GiB in 5 s: 30 to 18 %", "128 GiB", takes(128, 38.4, 22.4, 5*time.Second)),
		memory("20 GiB of huge pages are made in 4 s: 28 to 8 GiB", "64 GiB", hugePages(64, 28, 20, 4*time.Second)),
		memory("20 GiB of huge pages are made in 10 s: 26 to 6 GiB", "64 GiB", hugePages(64, 26, 20, 10*time.Second)),
		memory("a control group at its limit, recorded", "24 GiB", recordedMemory(t, "limit.txt")),
		memory("an hour of builds and tests, recorded", "23.5 GiB", recordedHour(t, probes.MemoryPressure)),
		tasks("5,000 threads in 2 s from 15,000", threads(15000, 20000, 2*time.Second)),
		tasks("5,000 threads in 2 s from 15,000, every 150 s", again(150370*time.Millisecond, givesBack(time.Minute, threads(15000, 20000, 2*time.Second)))),
		tasks("8,000 threads in 4 s from 10,000", threads(10000, 18000, 4*time.Second)),
		tasks("6,000 threads in 5 s from 15,000", threads(15000, 21000, 5*time.Second)),
		tasks("3,000 threads in 1 s from 20,000", threads(20000, 23000, time.Second)),
		tasks("an hour of builds and tests, recorded", recordedHour(t, probes.PIDPressure)),
	}
	for i := range all {
		if strings.Contains(all[i].name, "every") || strings.Contains(all[i].name, "hour") {
			all[i].lasts = time.Hour
		}
	}
	return all
}

// lookalikes are starts that no forecast can tell from an overload while they go on.
func lookalikes() []course {
	return []course{
		{name: "a JVM touches 6 GiB in 4 s: 52 to 15 %", host: "16 GiB", condition: probes.MemoryPressure, at: takes(16, 8.4, 2.4, 4*time.Second), lasts: 3 * time.Minute},
		{name: "10,000 threads in 3 s from 12,000", host: "32,768 tasks", condition: probes.PIDPressure, at: threads(12000, 22000, 3*time.Second), lasts: 3 * time.Minute},
	}
}

// overloads are courses after which a host has too little.
func overloads(t *testing.T) []course {
	hog := func(before time.Duration, host string, total, from, perSecond float64) course {
		within := time.Duration((from - 0.05) / perSecond * float64(time.Second))
		return course{
			fmt.Sprintf("a program takes %g GiB a second from %.0f %%", perSecond, 100*from/total), host, probes.MemoryPressure,
			takes(total, from, 0.05, within), within + 20*time.Second, before, 2 * time.Second,
		}
	}
	bomb := func(before time.Duration, name string, from, perSecond float64) course {
		return course{
			fmt.Sprintf("%s: %.0f tasks a second from %.0f", name, perSecond, from), "32,768 tasks", probes.PIDPressure,
			forks(from, perSecond), time.Duration((32768-from)/perSecond*float64(time.Second)) + 20*time.Second, before, 2 * time.Second,
		}
	}
	const ms = time.Millisecond
	swapping := hog(12130*ms, "16 GiB", 16, 15, 1)
	swapping.name += ", 4 GiB of swap"
	swapping.at = func(since time.Duration) moment {
		m := takes(16, 15, 0.08, 14920*ms)(since)
		m.swap, m.freeSwap = 4*gib, line(4, 0.01, 4*time.Second, since-12*time.Second)*gib
		return m
	}
	noisy := hog(19350*ms, "16 GiB", 16, 13, 0.5)
	noisy.name += ", beside builds"
	plain := noisy.at
	noisy.at = func(since time.Duration) moment { // they take 0.6 GiB and give it back, every 1.7 s
		m, build := plain(since), 1700*ms
		m.available -= min(m.available-50<<20, 0.6*gib*float64(since%build)/float64(build))
		return m
	}
	all := []course{
		{"a program takes all, recorded", "24 GiB", probes.MemoryPressure, recordedMemory(t, "overload.txt"), 30 * time.Second, 11910 * ms, 2 * time.Second},
		hog(6190*ms, "16 GiB", 16, 15, 2), hog(12130*ms, "16 GiB", 16, 15, 1), swapping, noisy,
		hog(50600*ms, "64 GiB", 64, 60, 1), hog(75940*ms, "64 GiB", 64, 60, 0.7),
		hog(20350*ms, "25 GiB", 25, 15, 0.5), hog(15350*ms, "25 GiB", 25, 12.5, 0.5), hog(5350*ms, "25 GiB", 25, 10, 1), hog(1940*ms, "25 GiB", 25, 7.5, 2),
		hog(30190*ms, "16 GiB", 16, 8, 0.2), hog(70350*ms, "16 GiB", 16, 8, 0.1), hog(720190*ms, "16 GiB", 16, 8, 0.01),
		bomb(2190*ms, "a fork bomb", 1000, 10000), bomb(3660*ms, "a fork bomb", 1000, 5000), bomb(8190*ms, "a fork bomb", 1000, 2000), bomb(15690*ms, "a fork bomb", 1000, 1000),
		bomb(2190*ms, "a fork bomb", 8000, 5000), bomb(8690*ms, "a fork bomb", 8000, 1000), bomb(1440*ms, "a fork bomb", 15000, 5000),
		bomb(26190*ms, "a leak", 1000, 600), bomb(497380*ms, "a leak", 3000, 50),
	}
	// From a busy host, and slowly, it looks like a start for longer.
	busy := []course{hog(10350*ms, "25 GiB", 25, 10, 0.5), hog(5350*ms, "25 GiB", 25, 7.5, 0.5), bomb(2870*ms, "a fork bomb", 15000, 1000)}
	for i := range busy {
		busy[i].later = 5 * time.Second
	}
	return append(all, busy...)
}

// phases are how long after a sample a course begins.
func phases(c course) []time.Duration {
	if c.lasts == time.Hour {
		return []time.Duration{0}
	}
	return []time.Duration{0, 970 * time.Millisecond, 1940 * time.Millisecond, 2910 * time.Millisecond}
}

// judged is what an agent made of a course, at the worst of some phases.
type judged struct {
	course
	tainted time.Duration // in all
	setAt   time.Duration // -1: at least once never
	then    moment
	message string
}

func judge(t *testing.T, c course) judged {
	t.Helper()
	worst := judged{course: c}
	for _, phase := range phases(c) {
		o := c.play(t, phase)
		worst.tainted = max(worst.tainted, o.tainted)
		if worst.setAt >= 0 && (o.setAt < 0 || o.setAt > worst.setAt || worst.message == "") {
			worst.setAt, worst.then, worst.message = o.setAt, o.then, o.message
		}
	}
	return worst
}

func judgeAll(t *testing.T, courses []course) []judged {
	t.Helper()
	all := make([]judged, 0, len(courses))
	for _, c := range courses {
		all = append(all, judge(t, c))
	}
	return all
}

// Ordinary starts are not tainted. One that looks like an overload is, for some
// seconds and no longer. An overload is seen as soon as when a forecast was believed
// at once, and a fork bomb before its level. The documentation has all of it.
func TestStartsAndOverloads(t *testing.T) {
	t.Parallel()
	ordinary, alike, bad := judgeAll(t, starts(t)), judgeAll(t, lookalikes()), judgeAll(t, overloads(t))
	for _, c := range ordinary {
		if c.tainted > 0 {
			t.Errorf("%s: tainted for %v, first after %v: %s", c.name, c.tainted, c.setAt, c.message)
		}
	}
	for _, c := range alike {
		if c.tainted == 0 || c.tainted > 10*time.Second {
			t.Errorf("%s: tainted for %v, first after %v: %s", c.name, c.tainted, c.setAt, c.message)
		}
	}
	for _, c := range bad {
		switch {
		case c.setAt < 0:
			t.Errorf("%s: never tainted", c.name)
		case c.setAt > c.before+c.later:
			t.Errorf("%s: tainted after %v, more than %v later than %v", c.name, c.setAt, c.later, c.before)
		case strings.Contains(c.name, "bomb") && float64(c.then.tasks) >= 0.85*float64(c.then.limit):
			t.Errorf("%s: tainted with %d tasks", c.name, c.then.tasks)
		}
	}
	comparePage(t, startsTable(append(ordinary, alike...))+"\n"+overloadsTable(bad))
}

func startsTable(all []judged) string {
	var b strings.Builder
	b.WriteString("| start | host | tainted for |\n|---|---|---|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, c.host, secondsText(c.tainted))
	}
	return b.String()
}

func overloadsTable(all []judged) string {
	var b strings.Builder
	b.WriteString("| overload | host | tainted after | before the kubelet's rule |\n|---|---|---|---|\n")
	for _, c := range all {
		kubelet := "no rule"
		if at, reached := c.kubelet(); reached {
			kubelet = secondsText(at - c.setAt)
		} else if c.condition == probes.MemoryPressure {
			kubelet = "not reached"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name, c.host, secondsText(c.setAt), kubelet)
	}
	return b.String()
}

func secondsText(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + " s"
}

// kubelet returns when the kubelet's default for memory.available is reached.
func (c course) kubelet() (at time.Duration, reached bool) {
	for at := time.Duration(0); c.condition == probes.MemoryPressure && at <= c.lasts; at += 10 * time.Millisecond {
		if c.at(at).available < 100<<20 {
			return at, true
		}
	}
	return 0, false
}

// comparePage compares a text with that between the marks of README.md,
// or writes it there. Figures may differ by a second, for a host with more processors
// is sampled sooner.
func comparePage(t *testing.T, got string) {
	t.Helper()
	const page, begin, end = "README.md", "<!-- starts and overloads -->\n", "<!-- end of starts and overloads -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	want, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no %s and %s", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+got+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	figure := regexp.MustCompile(`[\d.]+ s \|`)
	differs := figure.ReplaceAllString(got, "") != figure.ReplaceAllString(want, "")
	measured, told := figure.FindAllString(got, -1), figure.FindAllString(want, -1)
	for i := range min(len(measured), len(told)) {
		var a, b float64
		fmt.Sscan(measured[i], &a) //nolint:errcheck // the pattern has a number
		fmt.Sscan(told[i], &b)     //nolint:errcheck // the pattern has a number
		differs = differs || math.Abs(a-b) > 1
	}
	if differs {
		t.Errorf("%s has\n%s\nbut it is\n%s\n(make scenarios writes it)", page, want, got)
	}
}
