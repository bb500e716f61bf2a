package integration

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/cluster"
)

// patience is how long an event is waited for: far above what a busy machine
// needs.
const patience = time.Minute

// agent is a running agent.
type agent struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when a line comes
}

// startAgent starts an agent for the node with the permissions that it needs.
func startAgent(t *testing.T, c *cluster.Cluster, node string, host *fakeHost, config string, flags ...string) *agent {
	t.Helper()
	return startAgentAs(t, identity(t, c, node), node, host, config, flags...)
}

func startAgentAs(t *testing.T, as *rest.Config, node string, host *fakeHost, config string, flags ...string) *agent {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, configFile := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	if err := cluster.WriteKubeconfig(kubeconfig, as); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(configFile, []byte(configHeader+config), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--kubeconfig="+kubeconfig, "--config="+configFile, "--node-name="+node, "--listen=127.0.0.1:0")
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
	a := &agent{t: t, cmd: exec.Command(agentBinary(t), args...), done: make(chan struct{}), more: make(chan struct{})} //nolint:gosec // our own binary
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := a.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go a.collect(pipe)
	t.Cleanup(func() {
		a.kill()
		if t.Failed() {
			t.Logf("log of the agent:\n%s", a.log())
		}
	})
	return a
}

// collect reads the log until the process ends.
func (a *agent) collect(pipe io.Reader) {
	defer close(a.done)
	scanner := bufio.NewScanner(pipe)
	for scanner.Scan() {
		a.mu.Lock()
		a.lines = append(a.lines, scanner.Text())
		close(a.more)
		a.more = make(chan struct{})
		a.mu.Unlock()
	}
	a.cmd.Wait() //nolint:errcheck // the exit code is looked at by those who care
}

func (a *agent) log() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.lines, "\n")
}

// kill ends the agent as the kernel's OOM killer would.
func (a *agent) kill() {
	a.cmd.Process.Kill() //nolint:errcheck // it may be gone already
	<-a.done
}

// terminate ends the agent as a kubelet would, and returns the exit code.
func (a *agent) terminate() int {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	select {
	case <-a.done:
	case <-time.After(patience):
		a.t.Fatal("the agent does not end on SIGTERM")
	}
	return a.cmd.ProcessState.ExitCode()
}

// waitLog waits for a line that matches and returns its submatches.
func (a *agent) waitLog(pattern string) []string {
	a.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		a.mu.Lock()
		lines, more := a.lines, a.more
		a.mu.Unlock()
		for _, line := range lines {
			if match := re.FindStringSubmatch(line); match != nil {
				return match
			}
		}
		select {
		case <-more:
		case <-a.done:
			a.t.Fatalf("the agent ended without a log line that matches %q:\n%s", pattern, a.log())
		case <-deadline:
			a.t.Fatalf("no log line matches %q:\n%s", pattern, a.log())
		}
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
