// Package footprint measures what taintlet costs a host as a whole process, beside
// prometheus/node_exporter on the same host at the same time. Both run as a
// DaemonSet would run them, and both are scraped every 15 s.
//
// taintlet has peers: agents on hosts that are network namespaces (test/bed),
// with DNS and a real control plane, so that it asks all that it asks in a
// cluster. That needs root.
package footprint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/process"
)

// ChildName is the first argument of the process that measures in namespaces.
const ChildName = "footprint"

// endPatience is how long that process may take to end a control plane.
const endPatience = 30 * time.Second

// Options say what is measured, and for how long.
type Options struct {
	Module, Commit   string // the checkout
	WarmUp, Measured time.Duration
	Starts           int // how often each program is started
	// Say tells people what is being done.
	Say func(format string, args ...any)
}

// spec is what the measuring process is told.
type spec struct {
	Folder           string
	Agent, Exporter  built
	WarmUp, Measured time.Duration
	Starts           int
}

// Measure builds both programs and measures them in a process that has a network of its own.
func Measure(ctx context.Context, o Options) (f *Figures, err error) {
	if err := bed.CheckNamespaces(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "taintlet-footprint-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // the agents are not root
		return nil, err
	}
	s := &spec{Folder: folder, WarmUp: o.WarmUp, Measured: o.Measured, Starts: o.Starts}
	if s.Agent, s.Exporter, err = buildAll(ctx, &o, folder); err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.Folder, "spec.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	var said process.Lines
	command := exec.Command("/proc/self/exe", ChildName, file) //nolint:noctx // it is stopped below
	command.Stdout, command.Stderr = &said, os.Stderr
	p, err := bed.StartInNamespaces("the process in namespaces", command)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), p.Stop(endPatience))
	case <-p.Ended():
	}
	if err := p.Wait(); err != nil {
		return nil, fmt.Errorf("measure in namespaces: %w", err)
	}
	f = &Figures{}
	return f, json.Unmarshal([]byte(said.String()), f)
}

// Child measures as a file says, and prints the figures as JSON. It returns the
// exit code.
func Child(file string, say func(format string, args ...any)) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &spec{}
	text, err := os.ReadFile(file) //nolint:gosec // our own file
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	var f *Figures
	if err == nil {
		f, err = s.measure(ctx, say)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
