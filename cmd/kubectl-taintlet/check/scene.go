package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/probes/pid"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	account = installation.Account
	// nodeExtra is what the API server adds to whoever has a pod's token.
	nodeExtra = "authentication.kubernetes.io/node-name"
	// tellsWhoAsks is what the API server is told of the writer of a dry run that is not an
	// agent's.
	tellsWhoAsks = "taintlet-check"
)

// scene is what the checks share. What several of them need is asked for once.
type scene struct {
	config    *rest.Config
	me        *installation.Client
	namespace string
	port      int // of the hosts, where the agents listen

	program string // the version of this program

	version    version.Info
	versionErr error

	admission asked[map[string]schema.GroupVersion]
	nodes     asked[*nodes]
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
	me, err := installation.NewClient(config)
	if err != nil {
		return nil, err
	}
	return &scene{config: config, me: me, namespace: namespace}, nil
}

// user is the agents' user, whom the checks ask about.
func (s *scene) user() rest.ImpersonationConfig { return installation.User(s.namespace, account) }

// agent asks as the agent of a Node.
func (s *scene) agent(node string) (*installation.Client, error) {
	user := s.user()
	user.Extra = map[string][]string{nodeExtra: {node}}
	return s.as(user)
}

func (s *scene) as(who rest.ImpersonationConfig) (*installation.Client, error) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = who
	return installation.NewClient(config)
}

// tryPatch returns the Node that merging a patch would make. The policies let agents write
// under no manager but their account.
func tryPatch(ctx context.Context, as *installation.Client, manager, node string, patch any) (*taints.Node, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager}
	after, err := as.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, data, options)
	if err != nil {
		return nil, err
	}
	return apiserver.NodeOf(after), nil
}

// setsTaints is a patch that replaces the taints of a Node.
func setsTaints(all []taints.Taint) any {
	return map[string]any{"spec": map[string]any{"taints": all}}
}

// minorOf is the minor version of Kubernetes 1; 0: it is not known.
func minorOf(v version.Info) int {
	if v.Major != "1" {
		return 0
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil {
		return 0
	}
	return minor
}

// nodes is what the checks have to know of all Nodes, and of what is installed.
type nodes struct {
	names        []string
	report       status.Report
	installation *installation.Installation
	// config is the configuration that the agents use; nil: it is not known.
	config *config.Config
	// untainted is a Node without the taint with which the policy that keeps taints is tried;
	// empty: none.
	untainted string
	// overrides are those of the configuration that apply to a Node, by how they begin.
	overrides map[string]bool
	// oldKernels, unknown, disagreeing and otherPIDs are Nodes with what is to be
	// said of them.
	oldKernels, unknown, disagreeing, otherPIDs []string
}

// errNoNodes says that a check needs Nodes.
var errNoNodes = errors.New("the cluster has no Nodes")

// allNodes returns the Nodes.
func (s *scene) allNodes(ctx context.Context) (*nodes, error) {
	return s.nodes.once(func() (*nodes, error) { return s.readNodes(ctx) })
}

// readNodes reads what is installed, and the Nodes page by page. An agent may give no sign
// for two and a half heartbeats, so that one may be lost.
func (s *scene) readNodes(ctx context.Context) (*nodes, error) {
	client, err := apiserver.NewClient(s.config, "")
	if err != nil {
		return nil, err
	}
	i, err := (&installation.Reader{Client: s.me, Namespace: s.namespace}).Read(ctx)
	if err != nil {
		return nil, err
	}
	all, policy, silentAfter := &nodes{installation: i, overrides: map[string]bool{}}, config.Default().Policy(), status.DefaultSilentAfter
	if all.config, err = i.Configuration(); err == nil && all.config != nil {
		silentAfter = all.config.Heartbeat.Duration * 5 / 2
	}
	fleet := status.NewFleet(nil, silentAfter)
	fleet.Version = s.program
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
	fleet.SetInstallation(i)
	all.report = fleet.Report(time.Now())
	return all, nil
}

// add takes in a Node.
func (n *nodes) add(node *taints.Node, policy *decide.Policy) {
	name := strings.Clone(node.Name)
	n.names = append(n.names, name)
	if n.config != nil {
		place, _, _ := strings.Cut(n.config.For(node.Labels).Override, " ")
		n.overrides[place] = true
	}
	if node.OS == "linux" && isOldKernel(node.Kernel) {
		n.oldKernels = append(n.oldKernels, fmt.Sprintf("%s (%s)", name, strings.Clone(node.Kernel)))
	}
	for _, condition := range policy.Conditions {
		ours := node.Condition(decide.ConditionType(condition.Name))
		if ours == nil {
			continue
		}
		if ours.Status == taints.ConditionUnknown && ours.Reason != describe.ReasonBraked {
			n.unknown = append(n.unknown, fmt.Sprintf("%s (%s: %s)", name, ours.Type, strings.Clone(ours.Reason)))
		}
		if strings.Contains(ours.Message, pid.OtherNamespace) {
			n.otherPIDs = append(n.otherPIDs, name)
		}
		theirs := node.Condition(string(condition.Name))
		if theirs != nil && theirs.Status == taints.ConditionTrue && ours.Status == taints.ConditionFalse {
			n.disagreeing = append(n.disagreeing, fmt.Sprintf("%s (%s)", name, condition.Name))
		}
	}
	if n.untainted == "" && !node.Has(keptPair()) {
		n.untainted = name
	}
}

// isOldKernel reports whether Linux is older than 4.20, which brought PSI. What
// cannot be read is not old.
func isOldKernel(release string) bool {
	const major, minor = 4, 20
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	if errA != nil || errB != nil {
		return false
	}
	return a < major || a == major && b < minor
}

// denied reports whether the policy refused a request.
func denied(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

// mayNotImpersonate reports whether the check itself lacks a permission.
func mayNotImpersonate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "impersonate")
}

// policyVersion returns the version in which a resource of admissionregistration.k8s.io is
// served; empty: it is not.
func (s *scene) policyVersion(ctx context.Context, resource string) (schema.GroupVersion, error) {
	served, err := s.admission.once(func() (map[string]schema.GroupVersion, error) { return s.me.PolicyVersions(ctx) })
	return served[resource], err
}

// errNotKnown says that the configuration could not be read, or that the agents refuse it.
var errNotKnown = errors.New("the configuration is not known")

// inUse returns the configuration that the agents use.
func (s *scene) inUse(ctx context.Context) (*config.Config, error) {
	all, err := s.allNodes(ctx)
	switch {
	case err != nil:
		return nil, err
	case all.config == nil:
		return nil, errNotKnown
	}
	return all.config, nil
}

// agents returns the DaemonSet.
func (s *scene) agents(ctx context.Context) (*appsv1.DaemonSet, error) {
	all, err := s.allNodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range all.installation.DaemonSets {
		if d.Name == account {
			return d, nil
		}
	}
	return nil, errors.New("there is none, or it cannot be read")
}

// hasKeep reports whether deploy/keep.yaml is installed, or a part of it.
func (s *scene) hasKeep(ctx context.Context) (bool, error) {
	all, err := s.allNodes(ctx)
	if err != nil {
		return false, err
	}
	if !all.installation.Knows(installation.PartPolicies) {
		return false, errors.New("the admission policies could not be read")
	}
	return slices.ContainsFunc(all.installation.Mutating, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == taints.KeepPolicyName }) ||
		slices.ContainsFunc(all.installation.MutatingBindings, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == taints.KeepPolicyName }), nil
}
