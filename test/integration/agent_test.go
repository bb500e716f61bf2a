package integration

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

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// patience is how long an event is waited for: far above what a busy machine
// needs.
const patience = time.Minute

// agent is a running agent.
type agent struct {
	t       *testing.T
	process *process.Process
	output  process.Lines // its log
}

// startAgent starts an agent for the node with the permissions that it needs.
func startAgent(t *testing.T, c *cluster.Cluster, node string, host *fakeHost, config string, flags ...string) *agent {
	t.Helper()
	return startAgentAs(t, identity(t, c, node), node, host, config, flags...)
}

func startAgentAs(t *testing.T, as *rest.Config, node string, host *fakeHost, config string, flags ...string) *agent {
	t.Helper()
	configFile := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(configFile, []byte(configHeader+config), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--kubeconfig="+cluster.Kubeconfig(t, as), "--config="+configFile, "--node-name="+node, "--listen=127.0.0.1:0")
	return run(t, append(host.flags(), flags...)...)
}

const configHeader = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"

// quick makes recovery quick enough to be waited for.
const quick = `
memory: {debounce: {clearAfter: 2s}}
disk: {period: 500ms, debounce: {clearAfter: 2s}}
pid: {debounce: {clearAfter: 2s}}
network: {period: 1s, debounce: {clearAfter: 2s}}
`

func run(t *testing.T, args ...string) *agent {
	t.Helper()
	a := &agent{t: t}
	command := exec.Command(agentBinary(t), args...) //nolint:gosec // our own binary
	command.Stderr = &a.output
	var err error
	if a.process, err = process.Start("the agent", command, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.kill()
		if t.Failed() {
			t.Logf("log of the agent:\n%s", &a.output)
		}
	})
	return a
}

// kill ends the agent as the kernel's OOM killer would.
func (a *agent) kill() {
	a.t.Helper()
	if err := a.process.Kill(); err != nil {
		a.t.Error(err)
	}
}

// terminate ends the agent as a kubelet would, and returns the exit code.
func (a *agent) terminate() int {
	a.t.Helper()
	if err := a.process.Stop(patience); err != nil {
		a.t.Fatal(err)
	}
	return a.process.ExitCode()
}

// waitLog waits for a line that matches and returns its submatches.
func (a *agent) waitLog(pattern string) (match []string) {
	a.t.Helper()
	re := regexp.MustCompile(pattern)
	a.waitLines(fmt.Sprintf("a line that matches %q", pattern), func(lines []string) bool {
		for _, line := range lines {
			if match = re.FindStringSubmatch(line); match != nil {
				return true
			}
		}
		return false
	})
	return match
}

// waitLines waits until it holds for the log so far.
func (a *agent) waitLines(what string, holds func(lines []string) bool) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*patience)
	defer cancel()
	if err := a.process.WaitLines(ctx, &a.output, holds); err != nil {
		a.t.Fatalf("the log lacks %s: %v", what, err)
	}
}

// get asks the agent's HTTP server and returns status and body.
func (a *agent) get(path string) (int, string) {
	a.t.Helper()
	address := a.waitLog(`msg="taintlet starts".* listen=(\S+)`)[1]
	response, err := http.Get(fmt.Sprintf("http://%s%s", address, path))
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// instance is the agent's name in the record.
func (a *agent) instance() string {
	a.t.Helper()
	return a.waitLog(`msg="taintlet starts".* instance=(\S+)`)[1]
}

// metric is the value of a time series; 0 when there is none.
func (a *agent) metric(series string) int {
	a.t.Helper()
	_, body := a.get("/metrics")
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return atoi(a.t, strings.TrimSpace(value))
		}
	}
	return 0
}

// reconfigure puts another configuration in place of the agent's, as a
// ConfigMap's volume does, and returns its hash.
func (a *agent) reconfigure(config string) string {
	a.t.Helper()
	path := a.configFile()
	data := []byte(configHeader + config)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		a.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:12]
}

func (a *agent) configFile() string {
	a.t.Helper()
	for _, arg := range a.process.Args() {
		if path, found := strings.CutPrefix(arg, "--config="); found {
			return filepath.Clean(path)
		}
	}
	a.t.Fatal("the agent has no configuration file")
	return ""
}

// waitMetric waits for a line of the agent's metrics.
func (a *agent) waitMetric(line string) {
	a.t.Helper()
	cluster.Eventually(a.t, "a line of the metrics", func() error {
		_, metrics := a.get("/metrics")
		if strings.Contains("\n"+metrics, "\n"+line+"\n") {
			return nil
		}
		return fmt.Errorf("no %q in\n%s", line, metrics)
	})
}
