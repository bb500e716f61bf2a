package monitoring

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// plot draws lines, dashed thresholds with their names, and bands.
func (p *picture) plot(panel Panel, all []drawn, v view, b box) {
	defaults := panel.FieldConfig.Defaults
	low, high := bounds(panel, all)
	names := b.x + b.w
	for _, query := range all {
		if query.isThreshold() && len(query.series) > 0 {
			names = min(names, b.x+b.w-textWidth(query.legend(query.series[0].Labels))*0.9-8)
		}
	}
	marks := legendOf(all)
	lines := marks.lines(b.w)
	area := box{b.x + 56, b.y + 4, names - b.x - 60, b.h - 28 - 16*float64(len(lines))}
	x, y := timeAxis(v.from, v.to, area), axis{low, high, area.y + area.h, area.y, defaults.Custom.ScaleDistribution.Log}
	for _, query := range all {
		if query.isBand() {
			p.bands(query.series, x, area)
		}
	}
	p.times(x, area)
	p.values(y, area, defaults.Unit)
	p.thresholds(all, x, y, area)
	color := 0
	isStep := defaults.Custom.LineInterpolation == "stepAfter"
	for _, query := range all {
		if query.isThreshold() || query.isBand() {
			continue
		}
		for _, s := range query.series {
			stroke := lineColors()[color%len(lineColors())]
			p.line(s.Points, x, y, isStep, stroke)
			color++
		}
	}
	if color == 0 {
		p.text(area.x+area.w/2, area.y+area.h/2, "small", "middle", "nothing in this time")
	}
	for i, line := range lines {
		p.legend(line, b.x+2, b.y+b.h-12-16*float64(len(lines)-1-i))
	}
}

// bounds are the least and the largest value that are shown.
func bounds(panel Panel, all []drawn) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, query := range all {
		for _, s := range query.series {
			for _, point := range s.Points {
				if !query.isBand() && !math.IsNaN(point.Value) {
					low, high = min(low, point.Value), max(high, point.Value)
				}
			}
		}
	}
	if least := panel.FieldConfig.Defaults.Min; least != nil {
		low = *least
	}
	if most := panel.FieldConfig.Defaults.Max; most != nil {
		high = *most
	} else {
		high += (high - low) / 20
	}
	if panel.FieldConfig.Defaults.Custom.ScaleDistribution.Log > 0 {
		low, high = max(low, 0.5)/1.3, high*1.3
	}
	if math.IsInf(low, 0) || math.IsInf(high, 0) || high <= low {
		return 0, 1
	}
	return low, high
}

// bands shades the time in which a series is 1.
func (p *picture) bands(series []Series, x axis, area box) {
	for _, s := range series {
		for from := 0; from < len(s.Points); from++ {
			to := from
			for to+1 < len(s.Points) && s.Points[to].Value == 1 && s.Points[to+1].Value == 1 {
				to++
			}
			if s.Points[from].Value == 1 {
				begin, end := x.time(s.Points[from].At), min(x.time(s.Points[to].At.Add(scrapeInterval)), area.x+area.w)
				p.rect(box{begin, area.y, end - begin, area.h}, `class="band"`)
			}
			from = to
		}
	}
}

// entry of a legend: a name and how its mark looks.
type entry struct{ name, mark string }

// legend is what lies behind the dashed lines: first bands, then lines.
type legend []entry

func legendOf(all []drawn) (marks legend) {
	var lines legend
	for _, query := range all {
		switch {
		case query.isBand():
			marks = append(marks, entry{query.LegendFormat, `class="band"`})
		case !query.isThreshold():
			for _, s := range query.series {
				lines = append(lines, entry{query.legend(s.Labels), fmt.Sprintf(`fill="%s"`, lineColors()[len(lines)%len(lineColors())])})
			}
		}
	}
	return append(marks, lines...)
}

// lines breaks a legend where the width is used up.
func (l legend) lines(width float64) (lines []legend) {
	x := width
	for _, e := range l {
		if x+e.width() > width {
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		x += e.width()
	}
	return lines
}

func (e entry) width() float64 { return textWidth(e.name)*0.9 + 30 }

// thresholds draws dashed lines with their names beside them.
func (p *picture) thresholds(all []drawn, x, y axis, area box) {
	var names []entryAt
	for _, query := range all {
		if !query.isThreshold() {
			continue
		}
		for _, s := range query.series {
			p.path(s.Points, x, y, false, `class="threshold"`)
			names = append(names, entryAt{query.legend(s.Labels), y.at(s.Points[len(s.Points)-1].Value)})
		}
	}
	// From below, each at least a line above the one before.
	slices.SortFunc(names, func(a, b entryAt) int { return cmp.Compare(b.y, a.y) })
	lowest := math.Inf(1)
	for _, name := range names {
		lowest = min(lowest-13, name.y+4)
		p.text(area.x+area.w+6, lowest, "small", "start", name.text)
	}
}

// entryAt is a text at a height.
type entryAt struct {
	text string
	y    float64
}

func (p *picture) line(points []Point, x, y axis, isStep bool, stroke string) {
	p.path(points, x, y, isStep, fmt.Sprintf(`class="line" stroke="%s"`, stroke))
}

// path draws a line that is broken where there are no values.
func (p *picture) path(points []Point, x, y axis, isStep bool, attributes string) {
	var d strings.Builder
	var before time.Time
	for _, point := range points {
		if math.IsNaN(point.Value) {
			continue
		}
		px, py := x.time(point.At), y.at(min(max(point.Value, y.from), y.to))
		switch {
		case before.IsZero() || point.At.Sub(before) > 3*scrapeInterval:
			fmt.Fprintf(&d, "M%.1f %.1fh1", px, py) // a single point is seen too
		case isStep:
			fmt.Fprintf(&d, "H%.1fV%.1f", px, py)
		default:
			fmt.Fprintf(&d, "L%.1f %.1f", px, py)
		}
		before = point.At
	}
	p.put(`<path %s d="%s"/>`, attributes, d.String())
}

// legend puts the entries of one line side by side.
func (p *picture) legend(line legend, x, y float64) {
	for _, e := range line {
		p.rect(box{x, y, 12, 12}, e.mark+` rx="2"`)
		p.text(x+17, y+10, "small", "start", e.name)
		x += e.width()
	}
}
