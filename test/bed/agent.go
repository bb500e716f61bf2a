package bed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// Patience is how long an event is waited for: more than ten times what the slowest event
// takes, so that a machine on which others run too does not fail a test.
const Patience = 5 * time.Minute

// ConfigHeader is how each configuration file begins.
const ConfigHeader = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"

// Agent is a running agent.
type Agent struct {
	// T is the test.
	T testing.TB
	// Process is the agent's, Output its log.
	Process *process.Process
	Output  process.Lines
}

// StartAgent starts the program for the length of the test.
func StartAgent(t testing.TB, program string, args ...string) *Agent {
	t.Helper()
	return StartAgentCommand(t, exec.Command(program, args...)) //nolint:gosec,noctx // our own binary, which lives until it is ended
}

// StartAgentCommand is StartAgent for a command that has more than arguments.
func StartAgentCommand(t testing.TB, command *exec.Cmd) *Agent {
	t.Helper()
	a := &Agent{T: t}
	a.Process = StartProgram(t, "the agent", command, &a.Output)
	return a
}

// StartProgram starts a program for the length of the test. What it says on its standard
// error is its output, which is shown if the test fails.
func StartProgram(t testing.TB, name string, command *exec.Cmd, output *process.Lines) *process.Process {
	t.Helper()
	command.Stderr = output
	p, err := process.Start(name, command, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, output)
		}
	})
	return p
}

// Kill ends the agent as the kernel's OOM killer would.
func (a *Agent) Kill() {
	a.T.Helper()
	if err := a.Process.Kill(); err != nil {
		a.T.Error(err)
	}
}

// Terminate ends the agent as a kubelet would, and returns the exit code.
func (a *Agent) Terminate() int {
	a.T.Helper()
	if err := a.Process.Stop(Patience); err != nil {
		a.T.Fatal(err)
	}
	return a.Process.ExitCode()
}

// WaitLog waits for a line that matches and returns its submatches.
func (a *Agent) WaitLog(pattern string) (match []string) {
	a.T.Helper()
	re := regexp.MustCompile(pattern)
	a.WaitLines(fmt.Sprintf("a line that matches %q", pattern), func(lines []string) bool {
		for _, line := range lines {
			if match = re.FindStringSubmatch(line); match != nil {
				return true
			}
		}
		return false
	})
	return match
}

// WaitLines waits until it holds for the log so far.
func (a *Agent) WaitLines(what string, holds func(lines []string) bool) {
	a.T.Helper()
	ctx, cancel := context.WithTimeout(a.T.Context(), Patience)
	defer cancel()
	if err := a.Process.WaitLines(ctx, &a.Output, holds); err != nil {
		a.T.Fatalf("the log lacks %s: %v", what, err)
	}
}

// Get asks the agent's HTTP server and returns status and body.
func (a *Agent) Get(path string) (int, string) {
	a.T.Helper()
	return a.GetAt(a.WaitLog(`msg="taintlet starts".* listen=(\S+)`)[1], path)
}

// GetAt is Get for the port of an agent that waits for another one.
func (a *Agent) GetAt(address, path string) (int, string) {
	a.T.Helper()
	request, err := http.NewRequestWithContext(a.T.Context(), http.MethodGet, fmt.Sprintf("http://%s%s", address, path), nil)
	if err != nil {
		a.T.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.T.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		a.T.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// Instance is the agent's name in the record.
func (a *Agent) Instance() string {
	a.T.Helper()
	return a.WaitLog(`msg="taintlet starts".* instance=(\S+)`)[1]
}

// Metric is the value of a time series; 0 when there is none.
func (a *Agent) Metric(series string) int {
	a.T.Helper()
	_, body := a.Get("/metrics")
	return int(Metric(body, series))
}

// Losses is how many taints the agent has counted that others removed.
func (a *Agent) Losses() int {
	a.T.Helper()
	_, body := a.Get("/metrics")
	return int(Sum(body, "taintlet_taints_lost_total"))
}

// Reconfigure puts another configuration in place of the agent's, as a
// ConfigMap's volume does, and returns its hash.
func (a *Agent) Reconfigure(config string) string {
	a.T.Helper()
	path := a.ConfigFile()
	data := []byte(ConfigHeader + config)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		a.T.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		a.T.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:12]
}

// ConfigFile returns the path of the agent's configuration file.
func (a *Agent) ConfigFile() string {
	a.T.Helper()
	for _, arg := range a.Process.Args() {
		if path, found := strings.CutPrefix(arg, "--config="); found {
			return filepath.Clean(path)
		}
	}
	a.T.Fatal("the agent has no configuration file")
	return ""
}

// WaitMetric waits for a line of the agent's metrics.
func (a *Agent) WaitMetric(line string) {
	a.T.Helper()
	cluster.Eventually(a.T, "a line of the metrics", func() error {
		_, metrics := a.Get("/metrics")
		if strings.Contains("\n"+metrics, "\n"+line+"\n") {
			return nil
		}
		return fmt.Errorf("no %q in\n%s", line, metrics)
	})
}
