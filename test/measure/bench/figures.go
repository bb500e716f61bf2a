package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/measure/bench/footprint"
)

// figures are what a run measured. A part that was not measured is nil.
type figures struct {
	measure.Origin
	// Short: they were measured too quickly to mean anything.
	Short bool
	// Failed are parts that were begun and not measured.
	Failed    []string
	HotPaths  *hotPaths
	Footprint *footprint.Figures
	Latencies []latency
}

// isComplete reports whether everything was measured.
func (f *figures) isComplete() bool {
	return !f.Short && f.HotPaths != nil && f.HotPaths.LeftOut == "" &&
		f.Footprint != nil && f.Footprint.LeftOut == "" && len(f.Latencies) == len(subjects())
}

// completeFrom takes the parts that were not measured from figures of the same day
// and commit, if there are any in the folder.
func (f *figures) completeFrom(folder string) error {
	base := filepath.Join(folder, f.Date)
	text, err := os.ReadFile(base + ".json") //nolint:gosec // our own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	old := &figures{}
	if err := errors.Join(err, json.Unmarshal(text, old)); err != nil {
		return err
	}
	if strings.HasSuffix(f.Commit, "-dirty") || old.Commit != f.Commit || old.Machine != f.Machine || old.Short != f.Short {
		return nil
	}
	if f.HotPaths == nil && old.HotPaths != nil {
		raw, err := os.ReadFile(base + rawExt) //nolint:gosec // our own file
		if err != nil {
			return err
		}
		f.HotPaths = old.HotPaths
		f.HotPaths.Raw = string(raw)
	}
	if f.Footprint == nil {
		f.Footprint = old.Footprint
	}
	if f.Latencies == nil {
		f.Latencies = old.Latencies
	}
	return nil
}

// write writes the figures, the page and what the Go benchmarks printed, and returns
// the path of the page.
func (f *figures) write(folder string) (string, error) {
	path, err := measure.Write(folder, f.Date, f, render(f))
	if err != nil || f.HotPaths == nil {
		return path, err
	}
	return path, os.WriteFile(filepath.Join(folder, f.Date+rawExt), []byte(f.HotPaths.Raw), 0o644) //nolint:gosec // for everybody to read
}
