package main

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/recording"
)

func readAll(text string) ([]recording.Sample, error) {
	r, err := recording.NewReader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var all []recording.Sample
	for {
		sample, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, sample)
	}
}

// FuzzRecording: whatever a file has, it is read or refused, and what was read can be
// written, read again and replayed.
func FuzzRecording(f *testing.F) {
	header := recording.Header()
	f.Add(header + "2026-11-22T08:05:46.923670Z,DiskPressure,OK,false,true,49,SpaceNearThreshold,available:/a%20b=6.4e10 size:/a%20b=9.7e10 write:/=0.001\n")
	f.Add(header + "2026-01-31T12:00:00+01:00,MemoryPressure,Degraded,true,,,MemoryLow,available=1 total=1e18 stalled=1 stalled_fully=0 empty_in=1e18\n")
	f.Add("\uFEFFlevel,time,condition\r\n# note\r\nUnknown,2026-01-31T12:00:00Z,PIDPressure\r\n")
	f.Add("time,condition,level,inputs\n2026-01-31T12:00:00Z,PIDPressure,OK,free_tasks=1e18 task_limit=1e18 empty_in=0\n")
	f.Add("time,condition,level\n2026-01-31T12:00:00.0000001Z,PIDPressure,OK\n2026-01-31T12:00:00.0000002Z,PIDPressure,OK\n")
	f.Add(header + "\"\n")
	cfg := config.HostSchema().Default()
	f.Fuzz(func(t *testing.T, text string) {
		samples, err := readAll(text)
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\x00\r") {
			t.Errorf("the error would reach the terminal: %q", err)
		}
		var written strings.Builder
		if err := recording.Write(&written, samples); err != nil {
			t.Fatal(err)
		}
		again, err := readAll(header + written.String())
		if err != nil || len(again) != len(samples) {
			t.Fatalf("%v: %d samples, %d again\n%s", err, len(samples), len(again), written.String())
		}
		r := newReplay(cfg, true, io.Discard)
		for i, sample := range samples {
			sample.At = again[i].At // to the microsecond
			if len(sample.Inputs)+len(again[i].Inputs) == 0 {
				sample.Inputs = again[i].Inputs
			}
			if !reflect.DeepEqual(sample, again[i]) {
				t.Errorf("%+v\nhas become %+v", sample, again[i])
			}
			if err := r.add(sample); err != nil {
				t.Error(err)
			}
		}
	})
}
