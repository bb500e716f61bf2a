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

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

var update = flag.Bool("update", false, "write what becomes of starts and overloads into test/starts.md")

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
	// Each of these ends a little above its threshold. It gives back what it took after half a
	// period, and begins anew.
	for _, every := range []time.Duration{time.Minute, 2 * time.Minute} {
		often := func(at func(time.Duration) moment) func(time.Duration) moment {
			return again(every+370*time.Millisecond, givesBack(every/2, at))
		}
		name := func(what string) string { return fmt.Sprintf("%s, every %.0f s", what, every.Seconds()) }
		for _, end := range []float64{16, 12, 8, 6} { // percent
			all = append(all,
				memory(name(fmt.Sprintf("a job takes 4 GiB in 4 s, to %g %%", end)), "16 GiB", often(takes(16, 4+16*end/100, 16*end/100, 4*time.Second))),
				memory(name(fmt.Sprintf("a JVM touches half of the memory in 6 s, to %g %%", end)), "32 GiB", often(takes(32, 16+32*end/100, 32*end/100, 6*time.Second))))
		}
		all = append(all,
			memory(name("a JVM touches 6 GiB in 4 s: 52 to 15 %"), "16 GiB", often(takes(16, 8.4, 2.4, 4*time.Second))),
			memory(name("8 threads take 500 MiB each in 1 s, to 10.3 %"), "16 GiB", often(takes(16, 5.55, 1.65, time.Second))),
			memory(name("8 threads take 500 MiB each in 3 s, to 10.3 %"), "16 GiB", often(takes(16, 5.55, 1.65, 3*time.Second))),
			memory(name("a job takes 6 GiB in 1 s, to 5.5 %"), "64 GiB", often(takes(64, 9.52, 3.52, time.Second))),
			tasks(name("8,000 threads in 3 s from 14,000"), often(threads(14000, 22000, 3*time.Second))),
			tasks(name("10,000 threads in 3 s from 12,000"), often(threads(12000, 22000, 3*time.Second))),
			tasks(name("12,000 threads in 1 s from 15,000"), often(threads(15000, 27000, time.Second))))
	}
	for i := range all {
		switch name := all[i].name; {
		case strings.HasSuffix(name, "every 60 s"), strings.HasSuffix(name, "every 120 s"):
			all[i].lasts = 30 * time.Minute
		case strings.Contains(name, "every"), strings.Contains(name, "hour"):
			all[i].lasts = time.Hour
		}
	}
	return all
}

// overloads are courses after which a host has too little.
func overloads(t *testing.T) []course {
	hog := func(host string, total, from, perSecond float64) course {
		within := time.Duration((from - 0.05) / perSecond * float64(time.Second))
		return course{
			fmt.Sprintf("a program takes %g GiB a second from %.0f %%", perSecond, 100*from/total), host, probes.MemoryPressure,
			takes(total, from, 0.05, within), within + 20*time.Second,
		}
	}
	bomb := func(name string, from, perSecond float64) course {
		return course{
			fmt.Sprintf("%s: %.0f tasks a second from %.0f", name, perSecond, from), "32,768 tasks", probes.PIDPressure,
			forks(from, perSecond), time.Duration((32768-from)/perSecond*float64(time.Second)) + 20*time.Second,
		}
	}
	const ms = time.Millisecond
	noisy := hog("16 GiB", 16, 13, 0.5)
	noisy.name += ", beside builds"
	plain := noisy.at
	noisy.at = func(since time.Duration) moment { // they take 0.6 GiB and give it back, every 1.7 s
		m, build := plain(since), 1700*ms
		m.available -= min(m.available-50<<20, 0.6*gib*float64(since%build)/float64(build))
		return m
	}
	return []course{
		{"a program takes all, recorded", "24 GiB", probes.MemoryPressure, recordedMemory(t, "overload.txt"), 30 * time.Second},
		hog("16 GiB", 16, 15, 2), hog("16 GiB", 16, 15, 1), noisy, hog("8 GiB", 8, 4, 0.8), hog("8 GiB", 8, 4, 0.5),
		hog("64 GiB", 64, 60, 4), hog("64 GiB", 64, 60, 1), hog("64 GiB", 64, 60, 0.7),
		hog("25 GiB", 25, 15, 0.5), hog("25 GiB", 25, 12.5, 0.5), hog("25 GiB", 25, 10, 1), hog("25 GiB", 25, 7.5, 2),
		hog("25 GiB", 25, 10, 0.5), hog("25 GiB", 25, 7.5, 0.5), hog("16 GiB", 16, 8, 0.2), hog("16 GiB", 16, 8, 0.1), hog("16 GiB", 16, 8, 0.01),
		bomb("a fork bomb", 1000, 10000), bomb("a fork bomb", 1000, 5000), bomb("a fork bomb", 1000, 2000), bomb("a fork bomb", 1000, 1000),
		bomb("a fork bomb", 8000, 5000), bomb("a fork bomb", 8000, 1000), bomb("a fork bomb", 15000, 5000), bomb("a fork bomb", 15000, 1000),
		bomb("a leak", 1000, 600), bomb("a leak", 3000, 50),
	}
}

// phases are how long after a sample a course begins.
func phases(c course) []time.Duration {
	if c.lasts >= 30*time.Minute {
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
		o := c.play(t, config.Default(), phase)
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

// A start that leaves enough is never tainted. An overload is, before the kubelet's default
// threshold is reached and before the last task is taken. The documentation has both tables.
func TestStartsAndOverloads(t *testing.T) {
	t.Parallel()
	ordinary, bad := judgeAll(t, starts(t)), judgeAll(t, overloads(t))
	for _, c := range ordinary {
		if c.tainted > 0 {
			t.Errorf("%s: tainted for %v, first after %v: %s", c.name, c.tainted, c.setAt, c.message)
		}
	}
	for _, c := range bad {
		at, reached := c.end()
		switch {
		case c.setAt < 0:
			t.Errorf("%s: never tainted", c.name)
		case reached && c.setAt >= at:
			t.Errorf("%s: tainted after %v, and at its end after %v", c.name, c.setAt, at)
		}
	}
	comparePage(t, startsTable(ordinary)+"\n"+overloadsTable(bad))
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
	b.WriteString("| overload | host | tainted after | before the end by |\n|---|---|---|---|\n")
	for _, c := range all {
		ahead := "not reached"
		if at, reached := c.end(); reached {
			ahead = secondsText(at - c.setAt)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name, c.host, secondsText(c.setAt), ahead)
	}
	return b.String()
}

func secondsText(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Seconds()*100)/100, 'f', -1, 64) + " s"
}

// end returns when the kubelet's default for memory.available is reached, or no task is left.
func (c course) end() (at time.Duration, reached bool) {
	for at := time.Duration(0); at <= c.lasts; at += 10 * time.Millisecond {
		if m := c.at(at); c.condition == probes.MemoryPressure && m.available < 100<<20 || c.condition == probes.PIDPressure && m.tasks >= m.limit {
			return at, true
		}
	}
	return 0, false
}

// comparePage compares a text with that between the marks of the page,
// or writes it there. Figures may differ by a second, for a host with more processors
// is sampled sooner.
func comparePage(t *testing.T, got string) {
	t.Helper()
	const page, begin, end = "../../test/starts.md", "<!-- starts and overloads -->\n", "<!-- end of starts and overloads -->\n"
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
