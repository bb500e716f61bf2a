// Package recording is the file of samples that taintlet record writes and kubectl
// taintlet replay reads. The simulator in test/simulate reads it as well.
package recording

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// A recording is a CSV file with a line for each sample of each condition.

// allColumns returns the columns of a recording, in the order in which they are
// written. The first three are needed.
func allColumns() []string {
	return []string{"time", "condition", "level", "certain", "hysteresis", "severity", "reason", "inputs"}
}

// neededColumns is how many of the columns a file must have.
const neededColumns = 3

// Header is the first line of a recording.
func Header() string { return strings.Join(allColumns(), ",") + "\n" }

// timeFormat is RFC 3339 with microseconds. Two samples of one condition are
// farther apart.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// Sample is one line of a recording.
type Sample struct {
	At          time.Time
	Observation probes.Observation
	// Inputs are the quantities that the probe judged by, as Measures gives them.
	Inputs []probes.Measure
}

// Write writes the lines in one write, so that a recording that is cut off is
// cut off between two samples.
func Write(w io.Writer, samples []Sample) error {
	var text strings.Builder
	lines := csv.NewWriter(&text)
	for _, r := range samples {
		o := r.Observation
		if err := lines.Write([]string{
			r.At.UTC().Format(timeFormat), string(o.Condition), o.Level.String(),
			strconv.FormatBool(o.Certain), strconv.FormatBool(o.Hysteresis), strconv.Itoa(o.Severity), o.Reason, formatInputs(r.Inputs),
		}); err != nil {
			return err
		}
	}
	lines.Flush()
	_, err := io.WriteString(w, text.String())
	return err
}

// formatInputs writes quantities as "name=value" or "name:path=value", with a blank
// between two. In a path, what is not plain is escaped as in a URL.
func formatInputs(inputs []probes.Measure) string {
	words := make([]string, 0, len(inputs))
	for _, m := range inputs {
		name := m.Name
		if m.Path != "" {
			name += ":" + strings.ReplaceAll(url.PathEscape(m.Path), "%2F", "/")
		}
		words = append(words, name+"="+strconv.FormatFloat(m.Value, 'f', -1, 64))
	}
	return strings.Join(words, " ")
}

// maxInput bounds the value of a quantity. It is more than any host has of anything
// (bytes), and fits into an integer.
const maxInput = 1e18

// parseInputs reads what formatInputs writes.
func parseInputs(text string) ([]probes.Measure, error) {
	words := strings.Fields(text)
	inputs := make([]probes.Measure, 0, len(words))
	for _, word := range words {
		i := strings.LastIndex(word, "=")
		if i < 0 {
			return nil, fmt.Errorf("%.60q: must be NAME=VALUE or NAME:PATH=VALUE, with blanks between them", word)
		}
		name, path, _ := strings.Cut(word[:i], ":")
		unescaped, err := url.PathUnescape(path)
		if name == "" || err != nil {
			return nil, fmt.Errorf("%.60q: must be NAME=VALUE or NAME:PATH=VALUE, PATH as in a URL", word)
		}
		value, err := strconv.ParseFloat(word[i+1:], 64)
		if err != nil || !(value >= 0 && value <= maxInput) {
			return nil, fmt.Errorf("%.60q: the value must be a number of 0 to %.0e", word, float64(maxInput))
		}
		inputs = append(inputs, probes.Measure{Name: name, Path: unescaped, Value: value})
	}
	return inputs, nil
}
