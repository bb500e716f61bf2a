package main

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

func TestBadRecordings(t *testing.T) {
	const header = "time,condition,level\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "the file is empty; its first line must be time,condition,level"},
		"header only":         {header, "no row follows the header"},
		"no header":           {"0,MemoryPressure,OK\n", `line 1, column "0": must be one of time, condition, level, certain, hysteresis, severity, reason, inputs`},
		"column missing":      {"time,level\n0,OK\n", `line 1: column "condition" is missing; the header must have time, condition, level`},
		"column twice":        {"time,time,condition,level\n", `line 1, column "time": is there twice`},
		"too few columns":     {header + "0,OK\n", "line 2: has 2 columns; must have 3, as the header"},
		"not a time":          {header + "noon,MemoryPressure,OK\n", `line 2, column time: "noon": must be a number of seconds, or RFC 3339`},
		"negative":            {header + "-1,MemoryPressure,OK\n", `line 2, column time: "-1": must be 0 to 31622400 seconds`},
		"not a number":        {header + "NaN,MemoryPressure,OK\n", `line 2, column time: "NaN": must be 0 to 31622400 seconds`},
		"before 1971":         {header + "1969-01-01T00:00:00Z,MemoryPressure,OK\n", `line 2, column time: "1969-01-01T00:00:00Z": must be in the years 1971 to 2200`},
		"two kinds of time":   {header + "0,MemoryPressure,OK\n2026-01-01T00:00:00Z,MemoryPressure,OK\n", "line 3, column time: \"2026-01-01T00:00:00Z\": must be of the same kind as in the rows above"},
		"not in order":        {header + "5,MemoryPressure,OK\n6,DiskPressure,OK\n5,MemoryPressure,Degraded\n", "line 4, column time: must not be before that of the line above, "},
		"twice at a time":     {header + "5,MemoryPressure,OK\n5,DiskPressure,OK\n5,MemoryPressure,Degraded\n", "line 4, column time: must be later than that of the sample of MemoryPressure before it"},
		"more than a year":    {header + "2020-01-01T00:00:00Z,MemoryPressure,OK\n2026-01-01T00:00:00Z,MemoryPressure,OK\n", "at most 8784h0m0s can be simulated"},
		"condition":           {header + "0,Memory,OK\n", `line 2, column condition: "Memory": must be one of MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable`},
		"level":               {header + "0,MemoryPressure,ok\n", `line 2, column level: "ok": must be one of OK, Degraded, Critical, Unknown`},
		"certain":             {"time,condition,level,certain\n0,MemoryPressure,Degraded,yes\n", `line 2, column certain: "yes": must be true or false`},
		"certainly OK":        {"time,condition,level,certain\n0,MemoryPressure,OK,true\n", "line 2, column certain: true goes with Degraded and Critical only, not with OK"},
		"hysteresis":          {"time,condition,level,hysteresis\n0,MemoryPressure,OK,1\n", `line 2, column hysteresis: "1": must be true or false`},
		"hysteresis when bad": {"time,condition,level,hysteresis\n0,MemoryPressure,Degraded,true\n", "line 2, column hysteresis: true goes with level OK only, not with Degraded"},
		"quotes":              {header + "0,\"MemoryPressure,OK\n", "line 2"},
		"all at once":         {header + "x,MemoryPressure,OK\n0,MemoryPressure,bad\n", "line 3, column level"},
		"but not too many":    {header + strings.Repeat("x,MemoryPressure,OK\n", 50), "and perhaps more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readRecording(strings.NewReader(c.text))
			if err == nil {
				t.Fatalf("no error, want %q", c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %q", err, c.want)
			}
			if lines := strings.Count(err.Error(), "\n"); lines > maxErrors {
				t.Errorf("%d lines of errors", lines+1)
			}
		})
	}
}

// TestRecordings reads the same twenty seconds in every form that is allowed.
func TestRecordings(t *testing.T) {
	for name, text := range map[string]string{
		"seconds":          "time,condition,level\n0,PIDPressure,OK\n10.5,PIDPressure,Degraded\n20,PIDPressure,Unknown\n",
		"RFC 3339":         "time,condition,level\n2026-01-31T23:59:50Z,PIDPressure,OK\n2026-02-01T01:00:00.5+01:00,PIDPressure,Degraded\n2026-02-01T00:00:10Z,PIDPressure,Unknown\n",
		"other order":      "level,time,condition\nOK,0,PIDPressure\nDegraded,10.5,PIDPressure\nUnknown,20,PIDPressure\n",
		"by a spreadsheet": "\uFEFFtime,condition,level\r\n0,PIDPressure,OK\r\n10.5,PIDPressure,Degraded\r\n20,PIDPressure,Unknown\r\n",
		"by hand":          "time, condition, level\n# a comment\n\n0, PIDPressure, OK \n10.5, PIDPressure, Degraded\n20, PIDPressure, Unknown",
		"OK to begin with": "time,condition,level\n10.5,PIDPressure,Degraded\n20,PIDPressure,Unknown\n",
	} {
		t.Run(name, func(t *testing.T) {
			in, err := readRecording(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if want := 20*time.Second + afterLastRow; in.duration != want {
				t.Errorf("goes on for %s, want %s", in.duration, want)
			}
			from := in.sources[probes.PIDPressure]
			for _, want := range []struct {
				at    time.Duration
				level probes.Level
			}{
				{0, probes.OK},
				{10 * time.Second, probes.OK},
				{10500 * time.Millisecond, probes.Degraded},
				{20 * time.Second, probes.Unknown},
				{time.Hour, probes.Unknown},
			} {
				if got, _ := from.at(want.at, answers{}); got.level != want.level {
					t.Errorf("%s at %s, want %s", got.level, want.at, want.level)
				}
			}
		})
	}
}
