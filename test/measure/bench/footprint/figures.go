package footprint

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// Figures are what was measured.
type Figures struct {
	Seconds, WarmUp float64
	// Peers of the agent, and how often each program was scraped meanwhile.
	Peers, Scrapes int
	// LeftOut says what is not on, and why.
	LeftOut            string
	Taintlet, Exporter Program
}

// Program is one of the two. Quantities over time are medians but for the CPU.
type Program struct {
	Version        string
	RSS, Anonymous float64 // MiB
	MostRSS        float64 // MiB
	CPU            float64 // seconds an hour
	Threads        float64
	Descriptors    float64
	Binary, Image  float64 // MB
	Page           int     // bytes of a scrape
	// FirstSample and Ready are seconds from the start of the process.
	FirstSample, Ready float64
}

const mebibyte = 1 << 20

// sum turns the samples of a process into figures. The first one and the last one
// tell its CPU time.
func (p *Program) sum(samples []process.Usage, length time.Duration) {
	column := func(of func(process.Usage) float64) []float64 {
		var all []float64
		for _, u := range samples {
			all = append(all, of(u))
		}
		return all
	}
	rss := column(func(u process.Usage) float64 { return float64(u.RSS) / mebibyte })
	p.RSS, p.MostRSS = median(rss), slices.Max(rss)
	p.Anonymous = median(column(func(u process.Usage) float64 { return float64(u.Anonymous) / mebibyte }))
	p.Threads = median(column(func(u process.Usage) float64 { return float64(u.Threads) }))
	p.Descriptors = median(column(func(u process.Usage) float64 { return float64(u.Descriptors) }))
	p.CPU = (samples[len(samples)-1].CPU - samples[0].CPU).Hours() / length.Hours() * 3600
}

// median is the middle, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Row is a line of the table: cells are its name, both programs' values and their
// ratio.
type Row struct{ Name, Taintlet, Exporter, Ratio string }

// Rows are the table.
func (f *Figures) Rows() []Row {
	var rows []Row
	for _, r := range []struct {
		name, format string
		of           func(*Program) float64
	}{
		{"RSS", "%.1f MiB", func(p *Program) float64 { return p.RSS }},
		{"RSS, most", "%.1f MiB", func(p *Program) float64 { return p.MostRSS }},
		{"anonymous RSS", "%.1f MiB", func(p *Program) float64 { return p.Anonymous }},
		{"CPU time an hour", "%.2f s", func(p *Program) float64 { return p.CPU }},
		{"threads", "%.0f", func(p *Program) float64 { return p.Threads }},
		{"open descriptors", "%.0f", func(p *Program) float64 { return p.Descriptors }},
		{"binary", "%.1f MB", func(p *Program) float64 { return p.Binary }},
		{"image, compressed", "%.1f MB", func(p *Program) float64 { return p.Image }},
		{"page of a scrape", "%.0f kB", func(p *Program) float64 { return float64(p.Page) / 1000 }},
		{"start to first sample", "%.0f ms", func(p *Program) float64 { return 1000 * p.FirstSample }},
		{"start to ready", "%.0f ms", func(p *Program) float64 { return 1000 * p.Ready }},
	} {
		own, other := r.of(&f.Taintlet), r.of(&f.Exporter)
		rows = append(rows, Row{r.name, fmt.Sprintf(r.format, own), fmt.Sprintf(r.format, other), ratio(own, other)})
	}
	return rows
}

// ratio is own/other.
func ratio(own, other float64) string {
	if other == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", own/other)
}
