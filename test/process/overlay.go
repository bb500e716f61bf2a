package process

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Swap is a text of a source file that a build replaces by another one, such as a time that
// is too long to be waited for. No file of the checkout changes.
type Swap struct {
	// File is the path in the module.
	File     string
	Old, New string
}

// Overlay writes what BuildOptions.Overlay needs for the swaps into the folder, for the
// module in another folder. A text that its file does not have exactly once is an error: the
// source has changed.
func Overlay(module, folder string, swaps ...Swap) (overlay string, err error) {
	if module, err = filepath.Abs(module); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i, s := range swaps {
		path := filepath.Join(module, s.File)
		if replace[path] != "" {
			return "", fmt.Errorf("two swaps of %s", s.File)
		}
		source, err := os.ReadFile(path) //nolint:gosec // a source file
		if err != nil {
			return "", err
		}
		if count := strings.Count(string(source), s.Old); count != 1 {
			return "", fmt.Errorf("%s has %q %d times", s.File, s.Old, count)
		}
		replace[path] = filepath.Join(folder, strconv.Itoa(i)+".go")
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(source), s.Old, s.New, 1)), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
