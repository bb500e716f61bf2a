package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/measure/bench/footprint"
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

func renderFootprint(p printer, f *footprint.Figures) {
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
	for _, r := range f.Rows() {
		p("| %s | %s | %s | %s |\n", r.Name, r.Taintlet, r.Exporter, r.Ratio)
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
		p("| %s | %.2f | %.2f | %.2f | %.2f | %s | %.2f |\n", l.Title, median(mine).Seconds(), p90(mine).Seconds(), median(theirs).Seconds(),
			p90(theirs).Seconds(), ratio(median(theirs), median(mine)), p90(mine).Seconds()/median(theirs).Seconds())
		own = append(own, fmt.Sprintf("%s %.1f s", l.Title, median(mine).Seconds()))
		kubelet = append(kubelet, fmt.Sprintf("%s %.1f s", l.Title, median(theirs).Seconds()))
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

// median is the middle, or the mean of the two in the middle.
func median(sorted []time.Duration) time.Duration {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// p90 is the least value that nine of ten do not exceed.
func p90(sorted []time.Duration) time.Duration {
	return sorted[int(math.Ceil(0.9*float64(len(sorted))))-1]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func ratio(slow, fast time.Duration) string {
	return fmt.Sprintf("%.1f", slow.Seconds()/fast.Seconds())
}
