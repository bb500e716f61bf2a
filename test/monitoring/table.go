package monitoring

// columnOrder are the columns that are labels.
func columnOrder() []string {
	return []string{"node", "condition", "level", "reason", "what", "by", "input", "path", "key", "effect", "via", "field_manager", "hash"}
}

// valueColumn is how Grafana calls the values of a query of a table.
func (q Query) valueColumn(queries int) string {
	if queries > 1 {
		return "Value #" + q.RefID
	}
	return "Value"
}

// columnOf is the name of a query's column of values; empty: it is hidden.
func (p Panel) columnOf(query Query, queries int) string {
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
