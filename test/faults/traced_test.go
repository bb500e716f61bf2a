package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/process"
)

// traceEnv names the file into which an agent of the suite writes what goes into each of its
// decisions.
const traceEnv = "TAINTLET_FAULT_TRACE"

// programEnv names the agent that a run with fewer troubles does not build again.
const programEnv = "TAINTLET_FAULT_PROGRAM"

// decision is what went into one.
type decision struct {
	At           time.Duration        `json:"at"` // by CLOCK_BOOTTIME
	Observations []probes.Observation `json:"observations,omitempty"`
	Version      string               `json:"version,omitempty"` // of the Node; empty: none was given
	KeepPolicy   bool                 `json:"keepPolicy,omitempty"`
	Slot         decide.Slot          `json:"slot,omitempty"`
	Written      bool                 `json:"written,omitempty"`
	Refresh      bool                 `json:"refresh,omitempty"`
}

// traced are the changes of the agent's source that make it do so.
func traced() []process.Swap {
	return []process.Swap{
		{File: "agent/loop.go", Old: "\tbefore := l.state\n\tnext, d :=", New: "\ttrace(in)\n\tbefore := l.state\n\tnext, d :="},
		{File: "agent/trace.go", New: `package agent

import (
	"encoding/json"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

func trace(in decide.Inputs) {
	file, err := os.OpenFile(os.Getenv("` + traceEnv + `"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return // without a descriptor there is no trace
	}
	defer file.Close()
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at)
	var line struct {
		At           time.Duration        ` + "`json:\"at\"`" + `
		Observations []probes.Observation ` + "`json:\"observations,omitempty\"`" + `
		Version      string               ` + "`json:\"version,omitempty\"`" + `
		KeepPolicy   bool                 ` + "`json:\"keepPolicy,omitempty\"`" + `
		Slot         decide.Slot          ` + "`json:\"slot,omitempty\"`" + `
		Written      bool                 ` + "`json:\"written,omitempty\"`" + `
		Refresh      bool                 ` + "`json:\"refresh,omitempty\"`" + `
	}
	line.At, line.Observations, line.KeepPolicy, line.Slot, line.Written, line.Refresh = time.Duration(at.Nano()), in.Observations, in.Facts.KeepPolicy, in.Slot, in.Written, in.Refresh
	if in.Node != nil {
		line.Version = in.Node.ResourceVersion
	}
	text, _ := json.Marshal(line)
	_, _ = file.Write(append(text, '\n'))
}
`},
	}
}

// sinceBoot is the clock of the traces.
func sinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) // every kernel has it
	return time.Duration(at.Nano())
}

// trace is what one process of an agent decided by.
type trace struct {
	agent     string // the same for a process and those that follow it
	started   time.Duration
	decisions []decision
}

// traces returns those of all processes of the scene.
func (s *scene) traces() (all []trace, err error) {
	for i, r := range s.agents {
		r.mu.Lock()
		started := append([]time.Duration(nil), r.started...)
		r.mu.Unlock()
		for k, at := range started {
			one := trace{agent: []string{"first", "second"}[i%2], started: at}
			if i > 1 {
				one.agent = fmt.Sprint("agent-", i)
			}
			text, err := os.ReadFile(r.traceFile(k))
			if err != nil && !os.IsNotExist(err) {
				return nil, err
			}
			lines := bufio.NewScanner(bytes.NewReader(text))
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				var d decision
				if json.Unmarshal(lines.Bytes(), &d) == nil { // it may have been killed in mid-write
					one.decisions = append(one.decisions, d)
				}
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// traceFile is the file of the agent's process of that number.
func (r *runner) traceFile(number int) string {
	return filepath.Join(filepath.Dir(r.kubeconfig), fmt.Sprint("trace-", number))
}

// changes are what the suite changes in the agent: the trace, and the mutant that the
// environment names.
func changes() ([]process.Swap, error) {
	swaps := traced()
	name := os.Getenv(mutantEnv)
	if name == "" {
		return swaps, nil
	}
	mutant, found := mutants()[name]
	if !found {
		return nil, fmt.Errorf("no such mutant: %s", name)
	}
	return append(swaps, mutant), nil
}

// buildAgent builds the agent with its trace, or the mutant that the environment names.
func buildAgent(ctx context.Context, folder string, options process.BuildOptions) (path string, err error) {
	if built := os.Getenv(programEnv); built != "" {
		return built, nil
	}
	swaps, err := changes()
	if err != nil {
		return "", err
	}
	if options.Overlay, err = process.Overlay("../..", folder, swaps...); err != nil {
		return "", err
	}
	if isLong() {
		options.Cover = strings.TrimSuffix(decider, "/")
	}
	return process.BuildAgent(ctx, folder, options)
}
