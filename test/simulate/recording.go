package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/agent/recording"
	"github.com/taintlet/taintlet/probes"
)

// maxErrors is how many errors of a file are told at once.
const maxErrors = 10

// row is a level that a recording changes to.
type row struct {
	at     time.Duration
	sample sample
}

// recorded is the rows of one condition, in order of time.
type recorded struct {
	rows    []row
	current sample
}

func (r *recorded) at(now time.Duration, _ answers) (sample, time.Duration) {
	for len(r.rows) > 0 && r.rows[0].at <= now {
		r.current, r.rows = r.rows[0].sample, r.rows[1:]
	}
	if len(r.rows) == 0 {
		return r.current, forever
	}
	return r.current, r.rows[0].at
}

// readRecording reads a CSV file; usage tells its format. All that is wrong is
// reported at once, up to maxErrors, with line and column.
func readRecording(from io.Reader) (*input, error) {
	lines, err := recording.NewReader(from)
	if err != nil {
		return nil, err
	}
	times := &timeReader{}
	lines.ParseTime = times.parse
	conditions := map[probes.Condition]*recorded{}
	var errs []error
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF) && errs != nil:
			return nil, errors.Join(errs...)
		case errors.Is(err, io.EOF):
			return inputOf(conditions, times.absolute)
		case err != nil:
			if errs = append(errs, err); len(errs) == maxErrors {
				return nil, errors.Join(append(errs, errors.New("and perhaps more"))...)
			}
			continue
		}
		o := line.Observation
		known := conditions[o.Condition]
		if known == nil {
			known = &recorded{current: fine()}
			conditions[o.Condition] = known
		}
		// The time since 1970, until inputOf subtracts the earliest.
		known.rows = append(known.rows, row{time.Duration(line.At.UnixNano()), sample{o.Level, o.Certain, o.Hysteresis}})
	}
}

// timeReader reads seconds or RFC 3339, whichever the first row has.
type timeReader struct {
	absolute bool // RFC 3339
	any      bool // a time was read, so that absolute is known
}

func (r *timeReader) parse(field string) (time.Time, error) {
	seconds, notNumber := strconv.ParseFloat(field, 64)
	_, notStamp := time.Parse(time.RFC3339, field)
	switch {
	case notNumber != nil && notStamp != nil:
		return time.Time{}, fmt.Errorf("%q: must be a number of seconds, or RFC 3339 such as 2026-01-31T12:00:00Z", field)
	case r.any && r.absolute != (notStamp == nil):
		return time.Time{}, fmt.Errorf("%q: must be of the same kind as in the rows above, seconds or RFC 3339", field)
	case notNumber == nil && !(seconds >= 0 && seconds <= maxDuration.Seconds()):
		return time.Time{}, fmt.Errorf("%q: must be 0 to %.0f seconds", field, maxDuration.Seconds())
	}
	r.any, r.absolute = true, notStamp == nil
	if r.absolute {
		return recording.ParseTime(field)
	}
	return time.Unix(0, int64(math.Round(seconds*1e9))), nil
}

// inputOf makes the input of what was read.
func inputOf(conditions map[probes.Condition]*recorded, isAbsolute bool) (*input, error) {
	if len(conditions) == 0 {
		return nil, fmt.Errorf("no row follows the header")
	}
	begin, end := forever, time.Duration(0)
	for _, c := range conditions {
		begin = min(begin, c.rows[0].at)
		end = max(end, c.rows[len(c.rows)-1].at)
	}
	if !isAbsolute {
		begin = 0
	}
	if end-begin > maxDuration {
		return nil, fmt.Errorf("the rows cover %s; at most %s can be simulated", end-begin, maxDuration)
	}
	in := &input{duration: end - begin + afterLastRow, sources: map[probes.Condition]source{}}
	for name, c := range conditions {
		for i := range c.rows {
			c.rows[i].at -= begin
		}
		in.sources[name] = c
	}
	return in, nil
}
