package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/probes"
)

const (
	// recordAfter is how long after a sample the next one is recorded. The agent
	// samples as often near a threshold, and sooner after a bad sample.
	recordAfter = time.Second
	// maxRecordingTime is what the simulator reads at most.
	maxRecordingTime = 366 * 24 * time.Hour
)

// recordOptions are the flags of once that record.
type recordOptions struct {
	path string
	long time.Duration
}

func (o *recordOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.path, "record", "", "append a sample each second to this CSV `file` instead, until --for is over or a signal comes; - is the standard output")
	annotate(flags, "record", isFile)
	flags.DurationVar(&o.long, "for", 0, "how long to record, such as 10m (default: until a signal)")
}

// validate reports flags that do not go together.
func (o *recordOptions) validate(flags *pflag.FlagSet) error {
	switch {
	case flags.Changed("record") && o.path == "":
		return errors.New(`--record "": must be a file, or - for the standard output`)
	case o.path == "" && flags.Changed("for"):
		return errors.New("--for goes with --record only")
	case o.path != "" && flags.Changed("output"):
		return errors.New("--output goes without --record: a recording is CSV")
	case flags.Changed("for") && (o.long < time.Second || o.long > maxRecordingTime):
		return fmt.Errorf("--for %s: must be 1s to %s", o.long, maxRecordingTime)
	}
	return nil
}

// run records until the time is over or the context ends.
func (o *recordOptions) run(ctx context.Context, s *sampler, stdout io.Writer) (err error) {
	if o.long > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.long)
		defer cancel()
	}
	if o.path == "-" {
		if _, err := io.WriteString(stdout, recordingHeader()); err != nil {
			return err
		}
		return s.record(ctx, stdout)
	}
	file, err := openRecording(o.path)
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return s.record(ctx, file)
}

// openRecording opens a file to append to, and writes the header of a new one.
func openRecording(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // named by whoever calls us
	if err != nil {
		return nil, err
	}
	if err := beginRecording(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// beginRecording refuses to append to a file that is no recording, or whose last line
// is cut off.
func beginRecording(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := recordingHeader()
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: must be a regular file", file.Name())
	}
	if info.Size() == 0 {
		_, err := io.WriteString(file, header)
		return err
	}
	begin, end := make([]byte, len(header)), make([]byte, 1)
	if _, err := file.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(begin) != header {
		return fmt.Errorf("%s: there is something else in this file: its first line is not %s", file.Name(), strings.TrimSpace(header))
	}
	if _, err := file.ReadAt(end, info.Size()-1); err != nil {
		return err
	}
	if end[0] != '\n' {
		return fmt.Errorf("%s: the last line is cut off; delete it, or record into another file", file.Name())
	}
	return nil
}

// record writes a sample of all conditions each second until the context ends. A step
// of the wall clock does not move the times.
func (s *sampler) record(ctx context.Context, to io.Writer) error {
	begin := time.Now()
	ticker := time.NewTicker(recordAfter)
	defer ticker.Stop()
	for {
		observations := s.observe(ctx)
		if ctx.Err() != nil {
			return nil // what a probe said as it was stopped says nothing of the host
		}
		at := begin.Add(time.Since(begin))
		samples := make([]recorded, len(observations))
		for i, o := range observations {
			samples[i] = recorded{at: at, observation: o}
			if m, ok := s.probes[i].(probes.Measurer); ok {
				samples[i].inputs = m.Measures(nil)
			}
		}
		if err := writeRecorded(to, samples); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
