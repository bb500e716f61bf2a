package recording

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// maxLine bounds a line, in bytes. 32 paths with all their quantities take
// less, even where each path is as long as the kernel allows.
const maxLine = 1 << 20

// Reader reads a recording line by line: a file of days does not have to fit into
// memory.
type Reader struct {
	// ParseTime reads the column time.
	ParseTime func(field string) (time.Time, error)

	lines      *bufio.Scanner
	line       int
	columns    []string
	conditions []string
	last       time.Time
	lastOf     map[probes.Condition]time.Time
}

// NewReader reads the header.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{ParseTime: ParseTime, lines: bufio.NewScanner(from), lastOf: map[probes.Condition]time.Time{}}
	r.lines.Buffer(nil, maxLine)
	for _, c := range config.HostSchema() {
		r.conditions = append(r.conditions, string(c.Name))
	}
	fields, err := r.fields()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file is empty; its first line must be %s", strings.TrimSpace(Header()))
	}
	if err != nil {
		return nil, err
	}
	allowed := allColumns()
	for _, name := range fields {
		if !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("line %d, column %.60q: must be one of %s", r.line, name, strings.Join(allowed, ", "))
		}
		if slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("line %d, column %.60q: is there twice", r.line, name)
		}
		r.columns = append(r.columns, name)
	}
	for _, name := range allowed[:neededColumns] {
		if !slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("line %d: column %.60q is missing; the header must have %s", r.line, name, strings.Join(allowed[:neededColumns], ", "))
		}
	}
	return r, nil
}

// fields returns the fields of the next line that is neither empty nor a comment, or
// io.EOF.
func (r *Reader) fields() ([]string, error) {
	for r.lines.Scan() {
		r.line++
		text := strings.TrimSpace(strings.TrimPrefix(r.lines.Text(), "\uFEFF"))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		lines := csv.NewReader(strings.NewReader(text))
		lines.TrimLeadingSpace = true
		fields, err := lines.Read()
		if err != nil {
			return nil, r.explain(err)
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		return fields, nil
	}
	err := r.lines.Err()
	r.lines = bufio.NewScanner(strings.NewReader("")) // what follows cannot be read
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: must have at most %d bytes", r.line+1, maxLine)
	case err != nil:
		return nil, err
	}
	return nil, io.EOF
}

// explain says where a line is no CSV.
func (r *Reader) explain(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d, character %d: %w", r.line, parse.Column, parse.Err)
	}
	return fmt.Errorf("line %d: %w", r.line, err)
}

// Next returns the next sample, or io.EOF. Any other error says which line and column
// is wrong, and what is allowed. After it, Next goes on with the line below.
func (r *Reader) Next() (Sample, error) {
	fields, err := r.fields()
	if err != nil {
		return Sample{}, err
	}
	if len(fields) != len(r.columns) {
		return Sample{}, fmt.Errorf("line %d: has %d columns; must have %d, as the header", r.line, len(fields), len(r.columns))
	}
	var next Sample
	for i, column := range r.columns {
		if err := r.set(&next, column, fields[i]); err != nil {
			return Sample{}, fmt.Errorf("line %d, column %s: %w", r.line, column, err)
		}
	}
	o := next.Observation
	if o.Hysteresis && o.Level != probes.OK {
		return Sample{}, fmt.Errorf("line %d, column hysteresis: true goes with level OK only, not with %s", r.line, o.Level)
	}
	if o.Certain && o.Level < probes.Degraded {
		return Sample{}, fmt.Errorf("line %d, column certain: true goes with Degraded and Critical only, not with %s", r.line, o.Level)
	}
	return next, r.inOrder(next)
}

// inOrder refuses a time that goes back, and a second sample of a condition at one
// time.
func (r *Reader) inOrder(next Sample) error {
	condition := next.Observation.Condition
	if next.At.Before(r.last) {
		return fmt.Errorf("line %d, column time: must not be before that of the line above, %s", r.line, r.last.Format(time.RFC3339Nano))
	}
	if last, found := r.lastOf[condition]; found && !next.At.After(last) {
		return fmt.Errorf("line %d, column time: must be later than that of the sample of %s before it", r.line, condition)
	}
	r.last, r.lastOf[condition] = next.At, next.At
	return nil
}

// set reads one field.
func (r *Reader) set(to *Sample, column, field string) (err error) {
	o := &to.Observation
	switch column {
	case "time":
		to.At, err = r.ParseTime(field)
	case "condition":
		if o.Condition = probes.Condition(field); !slices.Contains(r.conditions, field) {
			err = fmt.Errorf("%.60q: must be one of %s", field, strings.Join(r.conditions, ", "))
		}
	case "level":
		if o.Level.UnmarshalText([]byte(field)) != nil {
			err = fmt.Errorf("%.60q: must be one of OK, Degraded, Critical, Unknown", field)
		}
	case "certain":
		o.Certain, err = parseFlag(field)
	case "hysteresis":
		o.Hysteresis, err = parseFlag(field)
	case "severity":
		o.Severity, err = parseSeverity(field)
	case "reason":
		if o.Reason = field; strings.ContainsFunc(field, isNoLetter) {
			err = fmt.Errorf("%.60q: must be a word of letters and digits", field)
		}
	case "inputs":
		to.Inputs, err = parseInputs(field)
	}
	return err
}

// isNoLetter reports what no reason has: they are words in CamelCase. What is read is
// shown on terminals.
func isNoLetter(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// ParseTime reads a time of RFC 3339, to the microsecond.
func ParseTime(field string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, field)
	if err != nil {
		return at, fmt.Errorf("%.60q: must be RFC 3339, such as 2026-01-31T12:00:00Z", field)
	}
	if at = at.UTC().Truncate(time.Microsecond); at.Year() < 1971 || at.Year() > 2200 {
		return at, fmt.Errorf("%.60q: must be in the years 1971 to 2200", field)
	}
	return at, nil
}

func parseFlag(field string) (bool, error) {
	if field != "true" && field != "false" && field != "" {
		return false, fmt.Errorf("%.60q: must be true or false", field)
	}
	return field == "true", nil
}

func parseSeverity(field string) (int, error) {
	if field == "" {
		return 0, nil
	}
	severity, err := strconv.Atoi(field)
	if err != nil || severity < 0 || severity > 100 {
		return 0, fmt.Errorf("%.60q: must be a whole number of 0 to 100", field)
	}
	return severity, nil
}
