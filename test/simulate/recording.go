package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// maxErrors is how many errors of a file are told at once.
const maxErrors = 10

// row is a level that a recording changes to.
type row struct {
	at     time.Duration
	sample sample
	line   int
}

// recording is the rows of one condition, in order of time.
type recording struct {
	rows    []row
	current sample
}

func (r *recording) at(now time.Duration, _ answers) (sample, time.Duration) {
	for len(r.rows) > 0 && r.rows[0].at <= now {
		r.current, r.rows = r.rows[0].sample, r.rows[1:]
	}
	if len(r.rows) == 0 {
		return r.current, forever
	}
	return r.current, r.rows[0].at
}

// recordingReader reads the rows of a CSV file.
type recordingReader struct {
	columns    []string // of the header
	absolute   bool     // times are RFC 3339
	any        bool     // a time was read, so that absolute is known
	recordings map[probes.Condition]*recording
}

// readRecording reads a CSV file; usage tells its format. All that is wrong is
// reported at once, up to maxErrors, with line and column.
func readRecording(from io.Reader) (*input, error) {
	lines := csv.NewReader(skipByteOrderMark(from))
	lines.Comment = '#'
	lines.TrimLeadingSpace = true
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file is empty; its first line must be time,condition,level")
	}
	if err != nil {
		return nil, explainCSV(err)
	}
	r := &recordingReader{recordings: map[probes.Condition]*recording{}}
	if r.columns, err = parseHeader(header); err != nil {
		line, _ := lines.FieldPos(0)
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	if err := r.readRows(lines); err != nil {
		return nil, err
	}
	return r.input()
}

// skipByteOrderMark passes over what spreadsheets write before the text.
func skipByteOrderMark(from io.Reader) io.Reader {
	const mark = "\uFEFF"
	buffered := bufio.NewReader(from)
	if begin, err := buffered.Peek(len(mark)); err == nil && string(begin) == mark {
		_, _ = buffered.Discard(len(mark)) // it has been peeked at
	}
	return buffered
}

func parseHeader(header []string) ([]string, error) {
	needed := []string{"time", "condition", "level"}
	// The last three are in recordings of the agent, and say more than levels.
	allowed := append(slices.Clone(needed), "certain", "hysteresis", "severity", "reason", "inputs")
	columns := make([]string, 0, len(header))
	for _, name := range header {
		name = strings.TrimSpace(name)
		if !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("column %q: must be one of %s", name, strings.Join(allowed, ", "))
		}
		if slices.Contains(columns, name) {
			return nil, fmt.Errorf("column %q: is there twice", name)
		}
		columns = append(columns, name)
	}
	for _, name := range needed {
		if !slices.Contains(columns, name) {
			return nil, fmt.Errorf("column %q is missing in the header", name)
		}
	}
	return columns, nil
}

func (r *recordingReader) readRows(lines *csv.Reader) error {
	var errs []error
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		}
		if err != nil {
			err = explainCSV(err)
		} else {
			line, _ := lines.FieldPos(0)
			err = r.add(fields, line)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if len(errs) == maxErrors {
			return errors.Join(append(errs, errors.New("and perhaps more"))...)
		}
	}
}

// explainCSV says where a file is no CSV, in the words of all other errors.
func explainCSV(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Errorf("line %d: must have as many columns as the header", parse.Line)
	}
	return fmt.Errorf("line %d, character %d: %w", parse.Line, parse.Column, parse.Err)
}

// add reads one row.
func (r *recordingReader) add(fields []string, line int) error {
	next := row{line: line}
	var condition probes.Condition
	for i, column := range r.columns {
		field := strings.TrimSpace(fields[i])
		var err error
		switch column {
		case "time":
			next.at, err = r.parseTime(field)
		case "condition":
			condition, err = parseCondition(field)
		case "level":
			next.sample.level, err = parseLevel(field)
		case "certain":
			next.sample.certain, err = parseFlag(field)
		case "hysteresis":
			next.sample.hysteresis, err = parseFlag(field)
		}
		if err != nil {
			return fmt.Errorf("line %d, column %s: %w", line, column, err)
		}
	}
	if next.sample.hysteresis && next.sample.level != probes.OK {
		return fmt.Errorf("line %d, column hysteresis: true goes with level OK only, not with %s", line, next.sample.level)
	}
	if next.sample.certain && !next.sample.bad() {
		return fmt.Errorf("line %d, column certain: true goes with Degraded and Critical only, not with %s", line, next.sample.level)
	}
	return r.append(condition, next)
}

func (r *recordingReader) append(condition probes.Condition, next row) error {
	known := r.recordings[condition]
	if known == nil {
		known = &recording{current: fine()}
		r.recordings[condition] = known
	}
	if n := len(known.rows); n > 0 && next.at <= known.rows[n-1].at {
		return fmt.Errorf("line %d, column time: must be later than that of line %d, the row of %s before it", next.line, known.rows[n-1].line, condition)
	}
	known.rows = append(known.rows, next)
	return nil
}

// parseTime reads seconds or RFC 3339, whichever the first row has. The latter
// becomes the time since 1970, until input subtracts the earliest.
func (r *recordingReader) parseTime(field string) (time.Duration, error) {
	seconds, notNumber := strconv.ParseFloat(field, 64)
	stamp, notStamp := time.Parse(time.RFC3339, field)
	switch {
	case notNumber != nil && notStamp != nil:
		return 0, fmt.Errorf("%q: must be a number of seconds, or RFC 3339 such as 2026-01-31T12:00:00Z", field)
	case r.any && r.absolute != (notStamp == nil):
		return 0, fmt.Errorf("%q: must be of the same kind as in the rows above, seconds or RFC 3339", field)
	case notStamp == nil && (stamp.Year() < 1971 || stamp.Year() > 2200):
		return 0, fmt.Errorf("%q: must be in the years 1971 to 2200", field)
	case notNumber == nil && !(seconds >= 0 && seconds <= maxDuration.Seconds()):
		return 0, fmt.Errorf("%q: must be 0 to %.0f seconds", field, maxDuration.Seconds())
	}
	r.any, r.absolute = true, notStamp == nil
	if r.absolute {
		return time.Duration(stamp.UnixNano()), nil
	}
	return time.Duration(math.Round(seconds * 1e9)), nil
}

func parseLevel(field string) (probes.Level, error) {
	for level := probes.Unknown; level <= probes.Critical; level++ {
		if level.String() == field {
			return level, nil
		}
	}
	return 0, fmt.Errorf("%q: must be one of OK, Degraded, Critical, Unknown", field)
}

func parseFlag(field string) (bool, error) {
	switch field {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, fmt.Errorf("%q: must be true or false", field)
}

// input makes the input of what was read.
func (r *recordingReader) input() (*input, error) {
	if len(r.recordings) == 0 {
		return nil, fmt.Errorf("no row follows the header")
	}
	begin, end := forever, time.Duration(0)
	for _, recording := range r.recordings {
		begin = min(begin, recording.rows[0].at)
		end = max(end, recording.rows[len(recording.rows)-1].at)
	}
	if !r.absolute {
		begin = 0
	}
	if end-begin > maxDuration {
		return nil, fmt.Errorf("the rows cover %s; at most %s can be simulated", end-begin, maxDuration)
	}
	in := &input{duration: end - begin + afterLastRow, sources: map[probes.Condition]source{}}
	for condition, recording := range r.recordings {
		for i := range recording.rows {
			recording.rows[i].at -= begin
		}
		in.sources[condition] = recording
	}
	return in, nil
}
