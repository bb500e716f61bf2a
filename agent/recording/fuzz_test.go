package recording

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzReader checks that a recording is read or refused, and that the read samples can be
// written and read again.
func FuzzReader(f *testing.F) {
	f.Add(Header() + "2026-11-22T08:05:46.923670Z,DiskPressure,OK,false,true,49,SpaceNearThreshold,available:/a%20b=6.4e10 size:/a%20b=9.7e10\n")
	f.Add("\uFEFFlevel,time,condition\r\n# note\r\nUnknown,2026-01-31T12:00:00Z,PIDPressure\r\n")
	f.Add("time,condition,level,inputs\n2026-01-31T12:00:00Z,PIDPressure,OK,free_tasks=NaN task_limit=-0 empty_in=Inf\n")
	f.Add(Header() + "\"\n,,,,,,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		samples, err := readAll(text)
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\x00\r") {
			t.Errorf("the error would reach the terminal: %q", err)
		}
		var written strings.Builder
		if err := Write(&written, samples); err != nil {
			t.Fatal(err)
		}
		if again, err := readAll(Header() + written.String()); err != nil || len(again) != len(samples) {
			t.Errorf("%v: %d samples, %d again\n%s", err, len(samples), len(again), written.String())
		}
	})
}

func readAll(text string) (all []Sample, err error) {
	r, err := NewReader(strings.NewReader(text))
	for err == nil {
		var sample Sample
		if sample, err = r.Next(); err == nil {
			all = append(all, sample)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}
