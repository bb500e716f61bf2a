package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// account is the agents' service account, and the name of most that the chart
	// installs.
	account = "taintlet"
	// label is on all that the chart installs.
	label = "app.kubernetes.io/name=taintlet"
	// nodeExtra is what the API server adds to whoever has a pod's token.
	nodeExtra = "authentication.kubernetes.io/node-name"
)

// scene is what the checks share. What several of them need is asked for once.
type scene struct {
	config    *rest.Config
	me        api
	namespace string
	port      int // of the hosts, where the agents listen

	program string // the version of this program

	version    version
	versionErr error

	configuration asked[*config.Config]
	nodes         asked[*nodes]
	daemonSet     asked[*daemonSet]
	pods          asked[[]pod]
	admission     asked[[]string]
}

// asked is an answer of the API server that several checks need.
type asked[T any] struct {
	isKnown bool
	answer  T
	err     error
}

// once asks, unless that was done before.
func (a *asked[T]) once(ask func() (T, error)) (T, error) {
	if !a.isKnown {
		a.answer, a.err = ask()
		a.isKnown = true
	}
	return a.answer, a.err
}

func newScene(config *rest.Config, namespace string) (*scene, error) {
	me, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	return &scene{config: config, me: me, namespace: namespace}, nil
}

// user is the agents' user, whom the checks ask about.
func (s *scene) user() string { return "system:serviceaccount:" + s.namespace + ":" + account }

// groups are those of the agents' user.
func groupsOf(namespace string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}

// agent asks as the agent of a Node.
func (s *scene) agent(node string) (api, error) {
	agent, err := s.as(rest.ImpersonationConfig{
		UserName: s.user(), Groups: groupsOf(s.namespace), Extra: map[string][]string{nodeExtra: {node}},
	})
	agent.manager = account // the policies let it write under no other name
	return agent, err
}

func (s *scene) as(who rest.ImpersonationConfig) (api, error) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = who
	return newAPI(config)
}

// version is the API server's.
type version struct {
	Major, Minor, GitVersion string
}

// number is the minor version of Kubernetes 1; 0: it is not known.
func (v version) number() int {
	if v.Major != "1" {
		return 0
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil {
		return 0
	}
	return minor
}

// nodes is what the checks have to know of all Nodes.
type nodes struct {
	names  []string
	report status.Report
	// silentAfter is how long an agent may give no sign.
	silentAfter time.Duration
	// held is a Node on which a taint is kept, with all its taints; empty: none.
	held       string
	heldKey    string
	heldTaints []taints.Taint
	// oldKernels, skewed, unknown and disagreeing are Nodes with what is to be said of
	// them.
	oldKernels, skewed, unknown, disagreeing []string
}

// errNoNodes says that a check needs Nodes.
var errNoNodes = errors.New("the cluster has no Nodes")

// allNodes returns the Nodes.
func (s *scene) allNodes(ctx context.Context) (*nodes, error) {
	return s.nodes.once(func() (*nodes, error) { return s.readNodes(ctx) })
}

// readNodes reads the Nodes, page by page.
func (s *scene) readNodes(ctx context.Context) (*nodes, error) {
	client, err := apiserver.NewClient(s.config, "")
	if err != nil {
		return nil, err
	}
	all, policy := &nodes{silentAfter: s.silentAfter(ctx)}, config.Default().Policy()
	fleet := status.NewFleet(nil, all.silentAfter)
	err = client.Each(ctx, func(node *taints.Node) error {
		fleet.Add(node)
		all.add(node, policy)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(all.names) == 0:
		return nil, errNoNodes
	}
	all.report = fleet.Report(time.Now())
	return all, nil
}

// silentAfter is two and a half heartbeats, so that one may be lost. 0: agents have
// none.
func (s *scene) silentAfter(ctx context.Context) time.Duration {
	cfg, err := s.inUse(ctx)
	if err != nil {
		return status.DefaultSilentAfter
	}
	return cfg.Heartbeat.Duration * 5 / 2
}

// add takes in a Node.
func (n *nodes) add(node *taints.Node, policy *decide.Policy) {
	name := strings.Clone(node.Name)
	n.names = append(n.names, name)
	if node.OS == "linux" && isOldKernel(node.Kernel) {
		n.oldKernels = append(n.oldKernels, fmt.Sprintf("%s (%s)", name, strings.Clone(node.Kernel)))
	}
	if off := status.SkewOf(node, policy); off.Abs() > maxSkew {
		n.skewed = append(n.skewed, fmt.Sprintf("%s (%s)", name, skewInWords(off)))
	}
	for _, condition := range policy.Conditions {
		ours := node.Condition(decide.ConditionType(condition.Name))
		if ours == nil {
			continue
		}
		if ours.Status == taints.ConditionUnknown && ours.Reason != describe.ReasonBraked {
			n.unknown = append(n.unknown, fmt.Sprintf("%s (%s: %s)", name, ours.Type, strings.Clone(ours.Reason)))
		}
		theirs := node.Condition(string(condition.Name))
		if theirs != nil && theirs.Status == taints.ConditionTrue && ours.Status == taints.ConditionFalse {
			n.disagreeing = append(n.disagreeing, fmt.Sprintf("%s (%s)", name, condition.Name))
		}
	}
	n.hold(node, name)
}

// hold remembers a Node on which a taint is kept now.
func (n *nodes) hold(node *taints.Node, name string) {
	if n.held != "" {
		return
	}
	for _, key := range taints.HeldKeys(node) {
		pair := taints.Pair{Key: key, Effect: taints.NoSchedule}
		_, isReconciled := taints.LifecycleCondition(pair)
		if isReconciled && node.Has(pair) {
			n.held, n.heldKey, n.heldTaints = name, strings.Clone(key), slices.Clone(node.Taints)
			return
		}
	}
}
