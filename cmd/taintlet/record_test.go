package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/recording"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// stopped is a probe that the end of a recording interrupts.
type stopped struct {
	probes.PeriodOnly

	stop context.CancelFunc
}

func (stopped) Condition() probes.Condition { return probes.MemoryPressure }

func (p stopped) Observe(ctx context.Context) probes.Observation {
	p.stop()
	return probes.UnknownBecause(probes.MemoryPressure, ctx.Err())
}

// What a probe says because the recording ends is not recorded: the host had no
// trouble.
func TestTheEndIsNoSample(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var text strings.Builder
	s := &sampler{probes: []probes.Probe{stopped{stop: stop}}}
	if err := s.record(ctx, &text); err != nil || text.Len() > 0 {
		t.Errorf("%v: %s", err, &text)
	}
}

// A recording on the standard output has its header, all conditions, and ends when its
// time is over.
func TestRecordingOnStandardOutput(t *testing.T) {
	code, out, stderr := program.Call(t, append([]string{"record", "-", "--for=3s"}, fixtures.NewHost(t).Flags()...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	reader, err := recording.NewReader(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for ; err == nil; samples++ {
		_, err = reader.Next()
	}
	samples-- // the end of the file
	if !errors.Is(err, io.EOF) || samples < 4 || samples%4 != 0 {
		t.Errorf("%v: %d samples in\n%s", err, samples, out)
	}
}

// Arguments that do not go together, and files that are no recordings, are refused. A file
// that is refused stays as it was.
func TestRecordingIsRefused(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const cut = "time,condition,level,certain,hysteresis,severity,reason,inputs\n2026-01-31T12:0"
	other, cutOff := write("other", "dear diary\n"), write("cut.csv", cut)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"record", "--for=2s"}, 2, "say into which file: FILE, or - for the standard output"},
		{[]string{"record", ""}, 2, "say into which file: FILE, or - for the standard output"},
		{[]string{"record", "-", "--for=1ms"}, 2, "--for 1ms: must be 1s to 8784h0m0s"},
		{[]string{"record", "-", "-o=json"}, 2, "unknown shorthand flag: 'o'"},
		{[]string{"record", other, "--for=2s"}, 1, "there is something else in this file"},
		{[]string{"record", cutOff, "--for=2s"}, 1, "the last line is cut off"},
		{[]string{"record", folder, "--for=2s"}, 1, "is a directory"},
		{[]string{"record", "/dev/full", "--for=2s"}, 1, "must be a regular file"},
	} {
		code, _, stderr := program.Call(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %s; want %d, %s", c.args, code, stderr, c.code, c.want)
		}
	}
	if text, err := os.ReadFile(cutOff); err != nil || string(text) != cut { //nolint:gosec // made above
		t.Errorf("%v: the file has become %q", err, text)
	}
}
