package monitoring

import (
	"math"
	"slices"
	"strings"
)

// row of a table, by column.
type row map[string]string

// joined are the labels by which the queries of a table are joined, as Grafana's
// transformation "merge" does.
func (r row) key() string {
	return r["node"] + " " + r["condition"] + " " + r["path"] + " " + r["input"]
}

// columnOrder is the order of the columns that are labels; those of values follow.
func columnOrder() []string {
	return []string{"node", "condition", "level", "reason", "what", "by", "input", "path", "key", "effect", "via", "field_manager", "hash"}
}

// table draws the joined answers.
func (p *picture) table(panel Panel, all []drawn, b box) {
	columns, rows := panel.rows(all)
	p.put(`<path class="base" d="M%.1f %.1fh%.1f"/>`, b.x, b.y+20, b.w)
	widths := map[string]float64{}
	for _, c := range columns {
		widths[c] = textWidth(c) + 30
		for _, r := range rows {
			widths[c] = max(widths[c], textWidth(r[c])+30)
		}
	}
	x := b.x
	for _, c := range columns {
		class := ""
		if panel.hasLink(c) {
			class = "link"
		}
		p.text(x, b.y+14, "head", "start", c)
		for i, r := range rows {
			p.text(x, b.y+38+float64(i)*22, class, "start", r[c])
		}
		x += widths[c]
	}
	if len(rows) == 0 {
		p.text(b.x+b.w/2, b.y+50, "small", "middle", "nothing")
	}
}

// rows joins the answers, and returns the columns that have something.
func (p Panel) rows(all []drawn) (columns []string, rows []row) {
	var values []string
	for _, query := range all {
		name := p.columnOf(query, len(all))
		if name != "" {
			values = append(values, name)
		}
		for _, s := range query.series {
			next := row{}
			for _, label := range columnOrder() {
				next[label] = s.Labels[label]
			}
			at := slices.IndexFunc(rows, func(r row) bool { return r.key() == next.key() })
			if at < 0 || len(all) == 1 { // of one query, each answer is a row
				rows, at = append(rows, row{}), len(rows)
			}
			for label, value := range next {
				if value != "" {
					rows[at][label] = value
				}
			}
			if name != "" {
				rows[at][name] = valueText(math.Round(s.Points[0].Value*1000)/1000, p.unitOf(name))
			}
		}
	}
	for _, c := range append(columnOrder(), values...) {
		if slices.ContainsFunc(rows, func(r row) bool { return r[c] != "" }) {
			columns = append(columns, c)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key(), b.key()) })
	return columns, rows
}

// valueColumn is how Grafana calls the values of a query of a table.
func (q Query) valueColumn(queries int) string {
	if queries > 1 {
		return "Value #" + q.RefID
	}
	return "Value"
}

// columnOf is the name of a query's column of values; empty: it is hidden.
func (p Panel) columnOf(query drawn, queries int) string {
	name := query.valueColumn(queries)
	for _, t := range p.Transformations {
		if t.Options.ExcludeByName[name] {
			return ""
		}
		if renamed, ok := t.Options.RenameByName[name]; ok {
			return renamed
		}
	}
	return name
}

// hasLink reports whether the values of a column lead to another dashboard.
func (p Panel) hasLink(column string) bool { return p.linkOf(column) != "" }

// linkOf is the address to which the values of a column lead; empty: none.
func (p Panel) linkOf(column string) string {
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.ID != "byName" || override.Matcher.Options != column {
			continue
		}
		for _, property := range override.Properties {
			links, ok := property.Value.([]any)
			if property.ID != "links" || !ok || len(links) == 0 {
				continue
			}
			link, _ := links[0].(map[string]any)
			address, _ := link["url"].(string)
			return address
		}
	}
	return ""
}

// unitOf is the unit of a column.
func (p Panel) unitOf(column string) string {
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.ID != "byName" || override.Matcher.Options != column {
			continue
		}
		for _, property := range override.Properties {
			if unit, ok := property.Value.(string); ok && property.ID == "unit" {
				return unit
			}
		}
	}
	return ""
}
