package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Sizes of the picture, in pixels.
const (
	plotLeft   = 120 // of the time axis; names stand to the left of it
	plotWidth  = 900
	plotRight  = 210 // figures stand there
	plotTop    = 84  // title and legend
	plotBottom = 30  // the axis' labels

	bandHeight  = 136
	laneInput   = 26 // top of each lane in its band
	inputHeight = 48
	laneOurs    = 82
	laneKubelet = 104
	barHeight   = 16
)

// Colours that people with any kind of colour vision can tell apart (Okabe and
// Ito), on a background of its own: the page may be dark or light.
const style = `text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:600}.band{font-weight:600;font-size:13px}.small{fill:#57606a;font-size:11px}
.paper{fill:#fff;stroke:#d0d7de}.lane{fill:#f3f5f7}.grid{stroke:#d0d7de;fill:none}.base{stroke:#8c959f}
.Degraded{fill:#e69f00}.Critical{fill:#c8402a}.Unknown{fill:#9aa3ad}.taintlet{fill:#0072b2}.kubelet{fill:#8e5ea2}`

// picture is an SVG in the making.
type picture struct{ bytes.Buffer }

func (p *picture) put(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text puts a text; anchor is start, middle or end.
func (p *picture) text(x, y int, class, anchor, text string) {
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(text)) // a Buffer takes everything
	p.put(`<text x="%d" y="%d" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escaped.Bytes())
}

// plot draws one band for each condition. It is at most some 100 kB for each,
// whatever happened: what lies within one pixel is merged.
func plot(r *report) []byte {
	p := &picture{}
	width, height := plotLeft+plotWidth+plotRight, plotTop+bandHeight*len(r.courses)+plotBottom
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`, width, height, width, height)
	p.put("<style>%s</style>", style)
	p.put(`<rect class="paper" x=".5" y=".5" width="%d" height="%d" rx="6"/>`, width-1, height-1)
	p.text(16, 30, "title", "start", fmt.Sprintf("taintlet and the kubelet's rule: %s, %s", r.Input, r.Duration))
	p.legend()
	end := time.Duration(r.Duration)
	for i, c := range r.courses {
		p.lanes(end, plotTop+i*bandHeight)
		p.band(c, end, plotTop+i*bandHeight, r.Conditions[2*i:2*i+2])
	}
	p.axis(end, plotTop+bandHeight*len(r.courses))
	p.put("</svg>")
	return p.Bytes()
}

func (p *picture) legend() {
	x := plotLeft
	for _, entry := range []struct {
		class, label string
		width        int
	}{
		{"Degraded", "input Degraded", 130},
		{"Critical", "input Critical", 120},
		{"Unknown", "input Unknown", 130},
		{ruleTaintlet, "tainted by taintlet", 145},
		{ruleKubelet, "tainted by the kubelet's rule", 200},
	} {
		p.put(`<rect class="%s" x="%d" y="47" width="14" height="14" rx="2"/>`, entry.class, x)
		p.text(x+20, 58, "", "start", entry.label)
		x += entry.width
	}
	p.text(x, 58, "small", "start", "pale: a part of the pixel's time")
}

// lanes puts what lies behind a band: under it, so that no line of the time
// axis seems to be a gap in a bar.
func (p *picture) lanes(end time.Duration, top int) {
	p.put(`<path class="lane" d="M%d %dh%dv%dh-%dzM%d %dh%dv%dh-%dzM%d %dh%dv%dh-%dz"/>`,
		plotLeft, top+laneInput, plotWidth, inputHeight, plotWidth,
		plotLeft, top+laneOurs, plotWidth, barHeight, plotWidth,
		plotLeft, top+laneKubelet, plotWidth, barHeight, plotWidth)
	for t := time.Duration(0); t <= end; t += tick(end) {
		p.put(`<path class="grid" d="M%d.5 %dV%d"/>`, onAxis(t, end), top+laneInput, top+laneKubelet+barHeight)
	}
	p.put(`<path class="base" d="M%d %d.5h%d"/>`, plotLeft, top+laneInput+inputHeight, plotWidth)
}

// onAxis is where a time is on the time axis.
func onAxis(t, end time.Duration) int {
	return plotLeft + int(plotWidth*t.Seconds()/end.Seconds())
}

// band draws one condition: the input as steps of which Critical is the upper
// half, below it a bar for each rule.
func (p *picture) band(c *course, end time.Duration, top int, told []figures) {
	p.put(`<g class="condition" id="%s">`, c.condition)
	p.text(16, top+16, "band", "start", string(c.condition))
	is := func(level probes.Level) func(int) bool { return func(value int) bool { return value == int(level) } }
	const half = inputHeight / 2
	levels := top + laneInput
	p.bar("Unknown", c.input.intervals(end, is(probes.Unknown)), end, levels+inputHeight-6, 6)
	p.bar("Degraded", c.input.intervals(end, isBad), end, levels+half, half)
	p.bar("Critical", c.input.intervals(end, is(probes.Critical)), end, levels, half)
	isTainted := func(n int) bool { return n > 0 }
	p.bar(ruleTaintlet, c.taintlet.intervals(end, isTainted), end, top+laneOurs, barHeight)
	p.bar(ruleKubelet, c.kubelet.intervals(end, isTainted), end, top+laneKubelet, barHeight)

	p.text(plotLeft-10, levels+half+4, "small", "end", "input")
	for i, y := range []int{top + laneOurs + 12, top + laneKubelet + 12} {
		p.text(plotLeft-10, y, "small", "end", told[i].Rule)
		p.text(plotLeft+plotWidth+10, y, "small", "start", fmt.Sprintf("%d changes, %.1f %% tainted", told[i].Changes, told[i].TaintedPercent))
	}
	p.text(plotLeft+plotWidth+10, levels+half+4, "small", "start", fmt.Sprintf("bad stretches: %d", told[0].BadStretches))
	p.put("</g>")
}

// opacity of a column by how much of its time is covered: a short burst must
// be seen, and a part must differ from the whole.
func opacities() []string { return []string{"0", ".35", ".5", ".65", "1"} }

// bar draws when something was the case: one path for each opacity.
func (p *picture) bar(class string, when []interval, end time.Duration, top, height int) {
	shades := shade(when, end)
	for tone := 1; tone < len(opacities()); tone++ {
		var d bytes.Buffer
		for x := 0; x < plotWidth; {
			run := x
			for run < plotWidth && shades[run] == shades[x] {
				run++
			}
			if shades[x] == tone {
				fmt.Fprintf(&d, "M%d %dh%dv%dh-%dz", plotLeft+x, top, run-x, height, run-x)
			}
			x = run
		}
		if d.Len() > 0 {
			p.put(`<path class="%s" opacity="%s" d="%s"/>`, class, opacities()[tone], d.Bytes())
		}
	}
}

// shade tells of each pixel of the time axis how much of its time is covered:
// 0 nothing, 4 all of it.
func shade(when []interval, end time.Duration) [plotWidth]int {
	var covered [plotWidth]float64
	perPixel := end.Seconds() / plotWidth
	for _, i := range when {
		from, to := i.from.Seconds()/perPixel, i.to.Seconds()/perPixel
		for x := int(from); x < plotWidth && float64(x) < to; x++ {
			covered[x] += min(to, float64(x+1)) - max(from, float64(x))
		}
	}
	var shades [plotWidth]int
	for x, share := range covered {
		switch {
		case share > 0.99:
			shades[x] = 4
		case share > 0:
			shades[x] = 1 + min(2, int(share*3))
		}
	}
	return shades
}

// axis labels the time axis below the bands.
func (p *picture) axis(end time.Duration, bottom int) {
	for t := time.Duration(0); t <= end; t += tick(end) {
		p.text(onAxis(t, end), bottom+10, "small", "middle", tickLabel(t))
	}
}

// tick is the time between two labels, of which there are at most 13.
func tick(end time.Duration) time.Duration {
	day := 24 * time.Hour
	for _, every := range []time.Duration{
		5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day,
	} {
		if end <= 12*every {
			return every
		}
	}
	return 31 * day
}

// tickLabel is short: days are days.
func tickLabel(t time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case t == 0:
		return "0"
	case t < day || t == day:
		return seconds(t).String()
	case t%day == 0:
		return fmt.Sprintf("%dd", t/day)
	}
	return fmt.Sprintf("%dd %s", t/day, seconds(t%day))
}
