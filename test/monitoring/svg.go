package monitoring

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sizes of a picture, in pixels: one column and one row of Grafana's grid.
const (
	column    = 50
	rowHeight = 28
	margin    = 8
)

// Colours that people with any kind of colour vision can tell apart (Okabe and Ito),
// on a background of its own: the page may be dark or light.
const style = `text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}
.title{font-size:18px;font-weight:600}.panel{font-weight:600;font-size:13px}.small{fill:#57606a;font-size:11px}.big{font-size:26px;font-weight:600;fill:#fff}.bar{font-size:11px;fill:#fff;font-weight:600}
.link{fill:#0969da}.head{font-weight:600;fill:#57606a}.page{fill:#f3f5f7}.paper{fill:#fff;stroke:#d0d7de}.grid{stroke:#e3e7eb;fill:none}.base{stroke:#8c959f;fill:none}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.threshold{fill:none;stroke:#c8402a;stroke-width:1.3;stroke-dasharray:6 4}.band{fill:#e69f00;opacity:.22}`

// lineColors are those of lines, in their order. Orange is for Degraded.
func lineColors() []string {
	return []string{"#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#8e5ea2", "#7a6f00", "#5c6670"}
}

// picture is an SVG in the making.
type picture struct{ bytes.Buffer }

func (p *picture) put(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text puts a text; anchor is start, middle or end.
func (p *picture) text(x, y float64, class, anchor, text string) {
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(text)) // a Buffer takes everything
	p.put(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escaped.Bytes())
}

// box is a rectangle of a picture.
type box struct{ x, y, w, h float64 }

func (p *picture) rect(b box, attributes string) {
	p.put(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" %s/>`, b.x, b.y, max(0, b.w), max(0, b.h), attributes)
}

// letter is about how wide one is in 12 pixels.
const letter = 7

// textWidth is about how wide a text is in 12 pixels.
func textWidth(text string) float64 { return letter * float64(len([]rune(text))) }

// shorten cuts a text to a width.
func shorten(text string, width float64) string {
	if most := max(1, int(width/letter+0.01)); len([]rune(text)) > most {
		return string([]rune(text)[:most-1]) + "…"
	}
	return text
}

// axis maps values to pixels.
type axis struct {
	from, to, begin, end float64
	log                  float64 // base of a logarithmic scale; 0: linear
}

func (a axis) at(value float64) float64 {
	share := (value - a.from) / (a.to - a.from)
	if a.log > 0 {
		share = math.Log(max(value, a.from)/a.from) / math.Log(a.to/a.from)
	}
	return a.begin + share*(a.end-a.begin)
}

// lines are the values at which an axis has a line: round numbers, or powers.
func (a axis) lines(unit string) (all []float64) {
	if a.log > 0 {
		for power := math.Pow(a.log, math.Floor(math.Log(a.from)/math.Log(a.log))); power <= a.to; power *= a.log {
			for _, factor := range []float64{1, 2, 5} {
				if value := power * factor; factor < a.log && value >= a.from && value <= a.to {
					all = append(all, value)
				}
			}
		}
		return all
	}
	step := roundStep((a.to-a.from)/4, unit)
	for value := math.Ceil(a.from/step) * step; value <= a.to*1.0001; value += step {
		all = append(all, value)
	}
	return all
}

// timeAxis maps times to pixels.
func timeAxis(from, to time.Time, b box) axis {
	return axis{from: float64(from.UnixMilli()), to: float64(to.UnixMilli()), begin: b.x, end: b.x + b.w}
}

func (a axis) time(t time.Time) float64 { return a.at(float64(t.UnixMilli())) }

// times draws the time axis of a plot.
func (p *picture) times(a axis, b box) {
	span := time.Duration(a.to-a.from) * time.Millisecond
	every := 10 * time.Second
	for _, longer := range []time.Duration{20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute} {
		if b.w/(span.Seconds()/every.Seconds()) < 55 {
			every = longer
		}
	}
	for t := time.Duration(0); t <= span; t += every {
		x := a.at(a.from + float64(t.Milliseconds()))
		p.put(`<path class="grid" d="M%.1f %.1fv%.1f"/>`, x, b.y, b.h)
		p.text(x, b.y+b.h+14, "small", "middle", fmt.Sprintf("%d:%02d", int(t.Minutes()), int(t.Seconds())%60))
	}
}

// values draws the value axis of a plot: lines at round numbers.
func (p *picture) values(a axis, b box, unit string) {
	for _, value := range a.lines(unit) {
		y := a.at(value)
		p.put(`<path class="grid" d="M%.1f %.1fh%.1f"/>`, b.x, y, b.w)
		p.text(b.x-6, y+4, "small", "end", valueText(value, unit))
	}
	p.put(`<path class="base" d="M%.1f %.1fh%.1f"/>`, b.x, b.y+b.h, b.w)
}

// roundStep is the next larger 1, 2 or 5 times a power of ten, or of two for bytes.
func roundStep(least float64, unit string) float64 {
	if least <= 0 {
		return 1
	}
	if unit == "bytes" {
		return math.Exp2(math.Ceil(math.Log2(least)))
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least {
			return factor * power
		}
	}
	return 10 * power
}

// valueText writes a value in one of Grafana's units.
func valueText(value float64, unit string) string {
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch unit {
	case "bytes":
		for _, u := range []string{"B", "KiB", "MiB"} {
			if math.Abs(value) < 1024 {
				return short(value) + " " + u
			}
			value /= 1024
		}
		return short(value) + " GiB"
	case "percentunit":
		return short(value*100) + " %"
	case "cps", "wps":
		return short(value) + "/s"
	case "s":
		switch {
		case value != 0 && math.Abs(value) < 1:
			return short(value*1000) + " ms"
		case value >= 3600:
			return short(value/3600) + " h"
		case value >= 120:
			return short(value/60) + " min"
		}
		return short(value) + " s"
	}
	if value >= 1000 {
		return strings.TrimSuffix(strconv.FormatFloat(value/1000, 'f', 1, 64), ".0") + " k"
	}
	return short(value)
}
