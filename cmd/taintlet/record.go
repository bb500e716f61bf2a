package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/agent/recording"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/probes"
)

const (
	// recordAfter is how long after a sample the next one is recorded. The agent
	// samples as often near a threshold, and sooner after a bad sample.
	recordAfter = time.Second
	// maxRecordingTime is what the simulator reads at most.
	maxRecordingTime = 366 * 24 * time.Hour
)

func recordVerb() *cobra.Command {
	var s sampler
	var long time.Duration
	c := &cobra.Command{
		Use: "record FILE", Short: "record samples of this host, to try a configuration on them",
		Long: `Record samples of this host, to try a configuration on them.

It appends the quantities of a sample each second to a CSV FILE (- is the standard output), until --for is
over or a signal arrives. An hour takes about 2 MB. "kubectl taintlet replay" shows what a configuration
would have done. It contacts no API server.`,
		Example: `  # Record ten minutes
  taintlet record host.csv --for=10m`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return command.Usagef("say into which file: FILE, or - for the standard output")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("for") && (long < time.Second || long > maxRecordingTime) {
				return command.Usagef("--for %s: must be 1s to %s", long, maxRecordingTime)
			}
			if err := s.load(); err != nil {
				return err
			}
			return s.recordFor(c.Context(), long, args[0], c.OutOrStdout())
		},
	}
	c.Flags().SortFlags = false
	c.Flags().DurationVar(&long, "for", 0, "how long to record, such as 10m (default: until a signal)")
	s.add(c.Flags())
	return c
}

// recordFor records until the time is over (0: never) or the context ends.
func (s *sampler) recordFor(ctx context.Context, long time.Duration, path string, stdout io.Writer) (err error) {
	if long > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, long)
		defer cancel()
	}
	if path == "-" {
		if _, err := io.WriteString(stdout, recording.Header()); err != nil {
			return err
		}
		return s.record(ctx, stdout)
	}
	file, err := openRecording(path)
	if err != nil {
		return err
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
	header := recording.Header()
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
		samples := make([]recording.Sample, len(observations))
		for i, o := range observations {
			samples[i] = recording.Sample{At: at, Observation: o}
			if m, ok := s.probes[i].(probes.Measurer); ok {
				samples[i].Inputs = m.Measures(nil)
			}
		}
		if err := recording.Write(to, samples); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
