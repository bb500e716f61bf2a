package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteJSON writes a value as JSON that people can read.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Listed joins the first of some names and says how many more there are.
func Listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
