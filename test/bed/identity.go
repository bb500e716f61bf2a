package bed

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// AgentUID is the user and the group of the agent in the chart.
const AgentUID = 65532

// IdentityOn returns what the agent of a Node reaches the API server by: a token of the
// agents' account that says on which Node its bearer is. The token is valid for longer
// than any program runs.
func IdentityOn(ctx context.Context, c *cluster.Cluster, node string) (*rest.Config, error) {
	return IdentityIn(ctx, c, Namespace, node)
}

// IdentityIn is IdentityOn for a release in another namespace.
func IdentityIn(ctx context.Context, c *cluster.Cluster, namespace, node string) (*rest.Config, error) {
	token, err := c.TokenOn(ctx, namespace, Account, node, cluster.LongToken)
	if err != nil {
		return nil, err
	}
	return c.WithToken(token), nil
}

// WriteIdentity writes a kubeconfig file that the agents' user can read.
func WriteIdentity(path string, as *rest.Config) error {
	return errors.Join(cluster.WriteKubeconfig(path, as), GiveToAgents(path))
}

// GiveToAgents makes the agents' user the owner of a file, if this process runs as root.
// Otherwise agents run as the same user as this process.
func GiveToAgents(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, AgentUID, AgentUID)
}

// Unprivileged returns a command that runs as the chart runs agents: if this process runs
// as root, as the agents' user and without any capability.
func Unprivileged(program string, args ...string) *exec.Cmd {
	if os.Geteuid() != 0 {
		return process.Command(program, args...)
	}
	id := strconv.Itoa(AgentUID)
	return process.Command("setpriv", append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
		"--no-new-privs", "--pdeathsig=KILL", "--", program}, args...)...)
}
