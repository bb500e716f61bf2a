package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

type printer func(format string, args ...any)

// render is the result as people read it.
func render(f *figures) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# What taintlet costs, %s\n\n%s\nWritten by `make bench`; [README.md](../README.md) says how it was measured.\n", f.Date, f.Origin)
	if f.Short {
		p("\n**A short run: its figures mean nothing.**\n")
	}
	for _, part := range f.Failed {
		p("\n**Not measured, because it failed: %s.**\n", part)
	}
	renderFootprint(p, f.Footprint)
	renderLatencies(p, f.Latencies)
	return b.String()
}

func renderFootprint(p printer, f *footprint) {
	p("\n## The process, beside node_exporter\n\n")
	if f == nil {
		p("Left out.\n")
		return
	}
	p("taintlet %s and node_exporter %s ran on one host at the same time. They were measured for %.1f min after %.1f min of warm-up.\n",
		f.Taintlet.Version, f.Exporter.Version, f.Seconds/60, f.WarmUp/60)
	p("Each was scraped every 15 s, %d times since its start. taintlet watched its Node, and %d peers answered it.\n", f.Scrapes, f.Peers)
	if f.LeftOut != "" {
		p("Left out: %s.\n", f.LeftOut)
	}
	p("\n| | taintlet | node_exporter | ratio |\n|---|---|---|---|\n")
	for _, r := range f.rows() {
		p("| %s |\n", strings.Join(r[:], " | "))
	}
}

func renderLatencies(p printer, all []latency) {
	p("\n## From threshold to taint, beside a kubelet\n\n")
	if len(all) == 0 {
		p("Left out.\n")
		return
	}
	p("Seconds from the crossing of the threshold until the taint was on the Node, of %d runs each.\n\n", len(all[0].Runs))
	p("| | taintlet median | p90 | kubelet and controller median | p90 | ratio of medians | taintlet's p90 / kubelet's median |\n|---|---|---|---|---|---|---|\n")
	var own, kubelet []string
	for _, l := range all {
		mine, theirs := l.column(func(o outcome) time.Duration { return o.Own }), l.column(func(o outcome) time.Duration { return o.Taint })
		p("| %s | %.2f | %.2f | %.2f | %.2f | %s | %.2f |\n", l.Title, middle(mine).Seconds(), p90(mine).Seconds(), middle(theirs).Seconds(),
			p90(theirs).Seconds(), ratio(middle(theirs), middle(mine)), p90(mine).Seconds()/middle(theirs).Seconds())
		own = append(own, fmt.Sprintf("%s %.1f s", l.Title, middle(mine).Seconds()))
		kubelet = append(kubelet, fmt.Sprintf("%s %.1f s", l.Title, middle(theirs).Seconds()))
	}
	p("\n| | kubelet and node-lifecycle-controller | taintlet |\n|---|---|---|\n")
	p("| from threshold to taint, median | %s | %s |\n", strings.Join(kubelet, ", "), strings.Join(own, ", "))
	for _, l := range all {
		renderRuns(p, l)
	}
}

// renderRuns is every run of one subject.
func renderRuns(p printer, l latency) {
	p("\n### %s\n\n%s\n\n| run | taken in | taintlet's taint | kubelet's condition | its taint | ratio |\n|---|---|---|---|---|---|\n",
		l.Title, l.Thresholds)
	for i, o := range l.Runs {
		p("| %d | %s | %s | %s | %s | %s |\n", i+1, seconds(o.Taking), seconds(o.Own), seconds(o.Condition), seconds(o.Taint), ratio(o.Taint, o.Own))
	}
}

// column returns one column of the runs, sorted.
func (l latency) column(of func(outcome) time.Duration) []time.Duration {
	var values []time.Duration
	for _, o := range l.Runs {
		values = append(values, of(o))
	}
	slices.Sort(values)
	return values
}

// p90 is the least value that nine of ten do not exceed.
func p90(sorted []time.Duration) time.Duration {
	return sorted[int(math.Ceil(0.9*float64(len(sorted))))-1]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func ratio(slow, fast time.Duration) string {
	return fmt.Sprintf("%.1f", slow.Seconds()/fast.Seconds())
}

func TestMedianAndP90(t *testing.T) {
	ten := []time.Duration{1, 2, 3, 4, 5, 7, 8, 9, 10, 100}
	for _, c := range []struct {
		sorted      []time.Duration
		median, p90 time.Duration
	}{
		{ten, 6, 10},
		{ten[:1], 1, 1},
		{ten[:3], 2, 3},
	} {
		if got := middle(c.sorted); got != c.median {
			t.Errorf("median of %v = %v, want %v", c.sorted, got, c.median)
		}
		if got := p90(c.sorted); got != c.p90 {
			t.Errorf("p90 of %v = %v, want %v", c.sorted, got, c.p90)
		}
	}
}

// complete returns the figures of a run that measured everything.
func complete() *figures {
	f := &figures{
		Origin:    measure.Origin{Date: "2026-11-22", Commit: "abc-dirty", Kernel: "6.1"},
		Footprint: &footprint{Seconds: 600, WarmUp: 120, Peers: 7, Taintlet: program{RSS: 15}, Exporter: program{RSS: 20}},
	}
	for _, u := range subjects() {
		f.Latencies = append(f.Latencies, latency{Title: u.title, Thresholds: "here", Runs: []outcome{{Own: 200 * time.Millisecond, Condition: 7 * time.Second, Taint: 8 * time.Second}}})
	}
	return f
}

func TestACompleteRun(t *testing.T) {
	for name, change := range map[string]func(*figures){
		"short":            func(f *figures) { f.Short = true },
		"no footprint":     func(f *figures) { f.Footprint = nil },
		"no peers":         func(f *figures) { f.Footprint.LeftOut = "peers" },
		"a latency lacks":  func(f *figures) { f.Latencies = f.Latencies[1:] },
		"nothing is wrong": func(*figures) {},
	} {
		f := complete()
		change(f)
		if got, want := f.isComplete(), name == "nothing is wrong"; got != want {
			t.Errorf("%s: complete is %t", name, got)
		}
	}
}

func TestRender(t *testing.T) {
	f := complete()
	f.Failed = []string{kubeletPart}
	text := render(f)
	for _, want := range []string{
		"2026-11-22", "abc-dirty", "Linux 6.1", "it failed: kubelet", "for 10.0 min after 2.0 min", "7 peers",
		"| RSS | 15.0 MiB | 20.0 MiB | 0.75 |", "| memory | 0.20 | 0.20 | 8.00 | 8.00 | 40.0 | 0.03 |",
		"| from threshold to taint, median | memory 8.0 s, PIDs 8.0 s, disk 8.0 s | memory 0.2 s, PIDs 0.2 s, disk 0.2 s |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
