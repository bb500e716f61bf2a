package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/agent"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fakehost"
)

// startAgent starts an agent for the node with the permissions that it needs.
func startAgent(t *testing.T, c *cluster.Cluster, node string, host *fakehost.Host, config string, flags ...string) *agent.Agent {
	t.Helper()
	return startAgentAs(t, identity(t, c, node), node, host, config, flags...)
}

func startAgentAs(t *testing.T, as *rest.Config, node string, host *fakehost.Host, config string, flags ...string) *agent.Agent {
	t.Helper()
	return agent.StartCommand(t, agentCommand(t, as, node, host, config, flags...))
}

func agentCommand(t *testing.T, as *rest.Config, node string, host *fakehost.Host, config string, flags ...string) *exec.Cmd {
	t.Helper()
	configFile := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(configFile, []byte(agent.Header+config), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--kubeconfig="+cluster.Kubeconfig(t, as), "--config="+configFile, "--node-name="+node, "--listen=127.0.0.1:0")
	return exec.Command(agentBinary(t), append(host.Flags(), flags...)...) //nolint:gosec // our own binary, which lives until it is ended
}

// quick makes recovery quick enough to be waited for.
const quick = `
memory: {debounce: {clearAfter: 2s}}
disk: {period: 500ms, debounce: {clearAfter: 2s}}
pid: {debounce: {clearAfter: 2s}}
network: {period: 1s, debounce: {clearAfter: 2s}}
`
