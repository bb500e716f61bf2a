package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	texts := map[string]string{}
	for _, s := range swaps {
		if texts[s.File] != "" {
			return "", fmt.Errorf("two swaps of %s", s.File)
		}
		if texts[s.File], err = s.in(filepath.Join(module, s.File)); err != nil {
			return "", err
		}
	}
	return OverlayOf(module, folder, texts)
}

// OverlayOf is Overlay for whole files, by their paths in the module.
func OverlayOf(module, folder string, texts map[string]string) (overlay string, err error) {
	replace := map[string]string{}
	for file, text := range texts {
		path := filepath.Join(folder, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(module, file)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// in returns the text that takes the place of the file.
func (s Swap) in(path string) (string, error) {
	source, err := os.ReadFile(path) //nolint:gosec // a source file
	switch {
	case s.Old == "" && errors.Is(err, fs.ErrNotExist):
		return s.New, nil
	case err != nil:
		return "", err
	case s.Old == "":
		return "", fmt.Errorf("%s exists", s.File)
	}
	if count := strings.Count(string(source), s.Old); count != 1 {
		return "", fmt.Errorf("%s has %q %d times", s.File, s.Old, count)
	}
	return strings.Replace(string(source), s.Old, s.New, 1), nil
}
