package measure

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Write writes figures as name.json and a text for people as name.md, and returns
// the path of the text. It replaces files of that name.
func Write(folder, name string, figures any, text string) (path string, err error) {
	content, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for everybody to read
		return "", err
	}
	base := filepath.Join(folder, name)
	if err := os.WriteFile(base+".json", append(content, '\n'), 0o644); err != nil { //nolint:gosec // for everybody to read
		return "", err
	}
	return base + ".md", os.WriteFile(base+".md", []byte(text), 0o644) //nolint:gosec // the same
}
