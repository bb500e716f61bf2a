package security

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// scene is what is attacked: an agent, its Node and its host, on a control plane
// with the shipped manifests.
type scene struct {
	admin kubernetes.Interface
	// stolen has the tokens that are tried on other Nodes of the cluster.
	stolen *attempted
	// node is the attacked agent's, other another one.
	node, other string

	cluster *cluster.Cluster
	// attacked is the agent's process, api what stands between it and its API
	// server, config its configuration file.
	attacked *bed.Agent
	api      *api
	config   string
	address  string // of its HTTP port
	host     *fixtures.Host
	nodes    *observer
	peak     *peak

	t *testing.T // of the attack that runs
	// The rest is of the attack that runs.
	mu         sync.Mutex
	worstDelay time.Duration
	cycles     int
	cycled     chan struct{} // closed with the next one
}

// configuration differs from the shipped ones in how often the host may fall sick and
// recover: an attack sees that again and again.
const configuration = `
memory: {period: 1s, debounce: {clearAfter: 500ms, maxClearAfter: 500ms}}
writeBudget: {interval: 1s}
`

// newScene installs the manifests and starts the agent.
func newScene(t *testing.T) *scene {
	t.Helper()
	c := attackable.Require(t)

	s := &scene{node: "attacked", other: "other", cluster: c, admin: c.Client(), host: fixtures.NewHost(t), t: t, cycled: make(chan struct{})}
	c.Register(t, s.node)
	c.Register(t, s.other)
	furnish(t, s)
	s.nodes = observe(t, c, s.node)
	as := bed.AgentOf(t, c, s.node)
	s.stolen = setScene(t, c)
	s.api = newAPI(t, as)
	s.config = configFile(t, configuration)
	s.attacked = s.start(t, s.node, s.config, s.api.configFor(as))
	s.address = s.attacked.WaitLog(`msg="taintlet starts".* listen=(\S+)`)[1]
	s.peak = newPeak(t, s.attacked.Process)
	s.nodes.wait(t, "the agent's conditions", cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	return s
}

// furnish gives the Node what is foreign to taintlet.
func furnish(t *testing.T, s *scene) {
	t.Helper()
	s.cluster.PatchNode(t, s.node, map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"example.com/pool": "a"}, "annotations": map[string]any{"example.com/note": "a"},
	}})
	s.cluster.SetTaints(t, s.node,
		corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "example.com/gpu", Effect: corev1.TaintEffectNoExecute},
		corev1.Taint{Key: "example.com/maintenance", Value: "tonight", Effect: corev1.TaintEffectPreferNoSchedule})
}

// configFile writes a configuration into a folder of its own.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(bed.ConfigHeader+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// agentFlags are those of an agent with the token of its Node's pod.
func agentFlags(t *testing.T, c *cluster.Cluster, node string, host *fixtures.Host, config string) []string {
	t.Helper()
	return append(host.Flags(), "--kubeconfig="+cluster.Kubeconfig(t, bed.AgentOf(t, c, node)), "--config="+configFile(t, config), "--node-name="+node, "--listen=127.0.0.1:0")
}

// start starts an agent with the environment that the chart gives it, and waits
// until it has read its configuration. Without an API server it is a dry run.
func (s *scene) start(t *testing.T, node, config string, as *rest.Config) *bed.Agent {
	t.Helper()
	args := append(s.host.Flags(), "--config="+config, "--node-name="+node, "--listen=127.0.0.1:0")
	if as != nil {
		args = append(args, "--kubeconfig="+cluster.Kubeconfig(t, as))
	} else {
		args = append(args, "--dry-run=client")
	}
	a := bed.StartAgentCommand(t, s.command(t, args...))
	a.WaitLog("taintlet starts")
	return a
}

func (s *scene) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := process.Command(program.Path(t), args...)
	command.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%dKiB", maxMemory))
	return command
}

// isTainted says whether the Node has the taint of memory pressure, by either key.
func isTainted(node *corev1.Node) bool {
	return cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)(node) ||
		cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule)(node)
}

// cycle makes the host sick and well again, and measures how long the taint takes.
func (s *scene) cycle() {
	begin := time.Now()
	s.host.Memory(2)
	s.taintComes(begin, maxDelay)
	s.recover()
	s.mu.Lock()
	s.cycles++
	close(s.cycled)
	s.cycled = make(chan struct{})
	s.mu.Unlock()
}

// taintComes waits for the taint and fails if it took longer than that since.
func (s *scene) taintComes(since time.Time, most time.Duration) {
	at, ok := s.nodes.until(time.Minute, isTainted)
	delay := at.Sub(since)
	s.mu.Lock()
	s.worstDelay = max(s.worstDelay, delay)
	s.mu.Unlock()
	switch {
	case !ok:
		s.t.Errorf("no taint %s after the host fell sick", time.Since(since))
	case delay >= most:
		s.t.Errorf("the taint came after %s, at most %s are allowed", delay, most)
	}
}

// recover makes the host well and waits for the end of the taint.
func (s *scene) recover() {
	s.host.Memory(50)
	if _, ok := s.nodes.until(time.Minute, cluster.Not(isTainted)); !ok {
		s.t.Error("the taint does not go although the host is well")
	}
}

// calm makes the host sick and well once, after which the agent is as before.
func (s *scene) calm(t *testing.T) {
	t.Helper()
	s.t = t
	s.cycle()
}

// keepFallingSick plays cycles until the function is called that it returns.
func (s *scene) keepFallingSick() (end func()) {
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			s.cycle()
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	return func() {
		close(stop)
		group.Wait()
	}
}

// waitCycle returns when a whole cycle has gone by.
func (s *scene) waitCycle() {
	s.mu.Lock()
	end := s.cycles + 2 // the one that is under way does not count
	s.mu.Unlock()
	for {
		s.mu.Lock()
		cycled, done := s.cycled, s.cycles >= end
		s.mu.Unlock()
		if done {
			return
		}
		<-cycled
	}
}

// watchHealth asks for the agent's health as a kubelet does, from the host's own
// address, until the function is called that it returns.
func (s *scene) watchHealth(t *testing.T) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	asker := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	group.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, path := range []string{"/healthz", "/readyz"} {
				answer, err := asker.Get("http://" + s.address + path)
				if err != nil {
					t.Errorf("%s gets no answer: %v", path, err)
					continue
				}
				answer.Body.Close() //nolint:errcheck // only the status matters
				if path == "/healthz" && answer.StatusCode != http.StatusOK {
					t.Errorf("%s says %s", path, answer.Status)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}
