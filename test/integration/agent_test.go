package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// startAgent starts an agent for the node with the permissions that it needs.
func startAgent(t *testing.T, c *cluster.Cluster, node string, host *fixtures.Host, config string) *bed.Agent {
	t.Helper()
	return startAgentAs(t, identity(t, c, node), node, host, config)
}

func startAgentAs(t *testing.T, as *rest.Config, node string, host *fixtures.Host, config string, flags ...string) *bed.Agent {
	t.Helper()
	return bed.StartAgentCommand(t, agentCommand(t, as, node, host, config, flags...))
}

func agentCommand(t *testing.T, as *rest.Config, node string, host *fixtures.Host, config string, flags ...string) *exec.Cmd {
	t.Helper()
	configFile := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(configFile, []byte(bed.ConfigHeader+config), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--kubeconfig="+cluster.Kubeconfig(t, as), "--config="+configFile, "--node-name="+node, "--listen=127.0.0.1:0")
	return exec.Command(binary.Path(t), append(host.Flags(), flags...)...) //nolint:gosec // our own binary, which lives until it is ended
}

// quick makes recovery quick enough to be waited for.
const quick = `
memory: {debounce: {clearAfter: 2s}}
disk: {period: 500ms, debounce: {clearAfter: 2s}}
pid: {debounce: {clearAfter: 2s}}
network: {period: 1s, debounce: {clearAfter: 2s}}
`
