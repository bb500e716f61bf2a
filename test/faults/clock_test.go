package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// clockEnv names the file that says, in seconds, how far the wall clock of an agent's host was
// stepped.
const clockEnv = "TAINTLET_FAULT_CLOCK"

// steppedClock are the changes of Go's package time, and of the program, by which the agents of
// the suite follow that file. The monotonic clock stays, and so do the clocks of the machine and
// of all other processes. A process without descriptors keeps the last step. The file is not
// read by Now itself: timers call it where no system call may be made.
func steppedClock(ctx context.Context) ([]process.Swap, error) {
	root, err := process.Output(ctx, "", nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	module, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	file, err := filepath.Rel(module, filepath.Join(strings.TrimSpace(root), "src/time/time.go"))
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return []process.Swap{
		{File: file, Old: now, New: "// Stepped is in seconds.\nvar Stepped int64\n\n" + now + "\tsec += Stepped\n"},
		{File: "cmd/taintlet/stepped.go", New: `package main

import (
	"os"
	"strconv"
	"time"
)

func init() {
	follow := func() {
		text, _ := os.ReadFile(os.Getenv("` + clockEnv + `"))
		if seconds, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			time.Stepped = seconds
		}
	}
	follow()
	go func() {
		for {
			time.Sleep(20 * time.Millisecond)
			follow()
		}
	}()
}
`},
	}, err
}

// step steps the wall clock of the agent's host, for its process and those that follow it.
func (r *runner) step(by time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wall += by
	seconds := strconv.FormatInt(int64(r.wall/time.Second), 10)
	return errors.Join(os.WriteFile(r.clock+".new", []byte(seconds), 0o600), os.Rename(r.clock+".new", r.clock))
}
