package monitoring

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// view is what a picture shows: a range, or a moment for stats and tables.
type view struct {
	prometheus       *Prometheus
	from, to, moment time.Time
	node             string
}

// drawn is a query and its answer.
type drawn struct {
	Query
	series []Series
}

// picture draws a dashboard, and returns the SVG.
func (v view) picture(d *Dashboard) ([]byte, error) {
	p, columns, rows := &picture{}, 0, 0
	panels := slices.DeleteFunc(slices.Clone(d.Panels), Panel.isOfProcess)
	for _, panel := range panels {
		columns, rows = max(columns, panel.GridPos.X+panel.GridPos.W), max(rows, panel.GridPos.Y+panel.GridPos.H)
	}
	const top = 44
	width, height := columns*column+2*margin, rows*rowHeight+top+margin
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`, width, height, width, height)
	p.put("<style>%s</style>", style)
	p.rect(box{0, 0, float64(width), float64(height)}, `class="page" rx="6"`)
	title := d.Title
	if v.node != "" {
		title += " " + v.node
	}
	p.text(2*margin, 29, "title", "start", title)
	p.text(float64(width-2*margin), 29, "small", "end", fmt.Sprintf("minutes since the beginning; stats and tables at %s", sinceText(v.moment.Sub(v.from))))
	for _, panel := range panels {
		g := panel.GridPos
		b := box{float64(g.X*column + margin + 3), float64(g.Y*rowHeight + top + 3), float64(g.W*column - 6), float64(g.H*rowHeight - 6)}
		if err := v.panel(p, panel, b); err != nil {
			return nil, fmt.Errorf("%s: %w", panel.Title, err)
		}
	}
	p.put("</svg>")
	return p.Bytes(), nil
}

func sinceText(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// panel draws one panel.
func (v view) panel(p *picture, panel Panel, b box) error {
	isMoment := panel.Type == "stat" || panel.Type == "table"
	var all []drawn
	for _, query := range panel.Targets {
		var series []Series
		var err error
		if isMoment {
			series, err = v.prometheus.Query(query.On(v.node), v.moment)
		} else {
			series, err = v.prometheus.Range(query.On(v.node), v.from, v.to)
		}
		if err != nil {
			return err
		}
		all = append(all, drawn{query, series})
	}
	p.rect(b, `class="paper" rx="4"`)
	p.text(b.x+10, b.y+19, "panel", "start", panel.Title)
	inner := box{b.x + 10, b.y + 28, b.w - 20, b.h - 36}
	switch panel.Type {
	case "stat":
		p.stat(panel, all, inner)
	case "table":
		p.table(panel, all, inner)
	case "state-timeline":
		p.timeline(panel, all, v, inner)
	default:
		p.plot(panel, all, v, inner)
	}
	return nil
}

// stat draws one number on the colour of its threshold.
func (p *picture) stat(panel Panel, all []drawn, b box) {
	text, color := "–", "#9aa3ad"
	defaults := panel.FieldConfig.Defaults
	if len(all[0].series) > 0 {
		value := all[0].series[0].Points[0].Value
		text = valueText(math.Round(value*100)/100, defaults.Unit)
		for _, step := range defaults.Thresholds.Steps {
			if step.Value == nil || value >= *step.Value {
				color = step.Color
			}
		}
		if shown, ok := panel.shown(value); ok {
			text, color = shown.Text, shown.Color
		}
	}
	p.rect(b, fmt.Sprintf(`fill="%s" rx="3"`, color))
	p.text(b.x+b.w/2, b.y+b.h/2+9, "big", "middle", text)
}

// shown is how the panel shows a value in place of its number.
func (p Panel) shown(value float64) (Shown, bool) {
	for _, mapping := range p.FieldConfig.Defaults.Mappings {
		if shown, ok := mapping.Options[strconv.FormatFloat(value, 'f', -1, 64)]; ok {
			return shown, true
		}
	}
	return Shown{}, false
}

// stripe is one row of a state timeline.
type stripe struct {
	name   string
	points []Point
}

// timeline draws a row for each series, coloured by its value.
func (p *picture) timeline(panel Panel, all []drawn, v view, b box) {
	var stripes []stripe
	for _, query := range all {
		for _, s := range query.series {
			name := query.legend(s.Labels)
			at := slices.IndexFunc(stripes, func(other stripe) bool { return other.name == name })
			if at < 0 {
				stripes = append(stripes, stripe{name: name})
				at = len(stripes) - 1
			}
			stripes[at].points = append(stripes[at].points, s.Points...)
		}
	}
	slices.SortFunc(stripes, func(a, b stripe) int { return strings.Compare(a.name, b.name) })
	label := 0.0
	for _, s := range stripes {
		label = max(label, textWidth(s.name))
	}
	label = min(label, b.w*0.6)
	plot := box{b.x + label + 8, b.y, b.w - label - 16, b.h - 18}
	a := timeAxis(v.from, v.to, plot)
	p.times(a, plot)
	if len(stripes) == 0 {
		p.text(b.x+b.w/2, b.y+b.h/2, "small", "middle", "nothing in this time")
		return
	}
	height := min(30, plot.h/float64(len(stripes)))
	for i, s := range stripes {
		y := plot.y + float64(i)*height
		p.text(plot.x-8, y+height/2+4, "", "end", shorten(s.name, label))
		p.states(panel, s.points, a, box{plot.x, y + 2, plot.w, height - 4})
	}
}

// states draws one row.
func (p *picture) states(panel Panel, points []Point, a axis, b box) {
	slices.SortFunc(points, func(x, y Point) int { return x.At.Compare(y.At) })
	for from := 0; from < len(points); {
		to := from
		for to+1 < len(points) && points[to+1].Value == points[from].Value && points[to+1].At.Sub(points[to].At) < 3*scrapeInterval {
			to++
		}
		shown, ok := panel.shown(points[from].Value)
		if !ok {
			shown = Shown{valueText(points[from].Value, ""), "#56b4e9"}
		}
		x := a.time(points[from].At)
		w := min(a.time(points[to].At.Add(scrapeInterval)), b.x+b.w) - x
		p.rect(box{x, b.y, w, b.h}, fmt.Sprintf(`fill="%s"`, shown.Color))
		if textWidth(shown.Text)+8 < w {
			p.text(x+6, b.y+b.h/2+4, "bar", "start", shown.Text)
		}
		from = to + 1
	}
}
