package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/problems"
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

	admission     asked[map[string]schema.GroupVersion]
	configuration asked[*config.Config]
	nodes         asked[*nodes]
	daemonSet     asked[*appsv1.DaemonSet]
	pods          asked[[]*corev1.Pod]
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

// nodes is what the checks have to know of all Nodes.
type nodes struct {
	names  []string
	report status.Report
	// silentAfter is how long an agent may give no sign.
	silentAfter time.Duration
	// untainted is a Node without the taint with which the policy that keeps taints is tried;
	// empty: none.
	untainted string
	// oldKernels, skewed, unknown, disagreeing and otherPIDs are Nodes with what is to be
	// said of them.
	oldKernels, skewed, unknown, disagreeing, otherPIDs []string
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
	fleet.Version = s.program
	i, err := (&installation.Reader{Client: s.me, Namespace: s.namespace}).Read(ctx)
	if err != nil {
		return nil, err
	}
	fleet.SetInstallation(i)
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
	if off := status.SkewOf(node, policy); off.Abs() > problems.MaxSkew {
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

func skewInWords(off time.Duration) string {
	if off > 0 {
		return fmt.Sprintf("%s ahead", off)
	}
	return fmt.Sprintf("%s behind", -off)
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

// policyObject reads an object of a resource of admissionregistration.k8s.io, in the version
// in which that is served.
func (s *scene) policyObject(ctx context.Context, resource, name string) (*unstructured.Unstructured, error) {
	version, err := s.policyVersion(ctx, resource)
	if err != nil {
		return nil, err
	}
	if version.Empty() {
		version = admissionv1.SchemeGroupVersion // its answer says that there is no such resource
	}
	return s.me.Dynamic.Resource(version.WithResource(resource)).Get(ctx, name, metav1.GetOptions{})
}

// inUse returns the configuration that the agents use.
func (s *scene) inUse(ctx context.Context) (*config.Config, error) {
	return s.configuration.once(func() (*config.Config, error) {
		client, err := apiserver.NewClient(s.config, "")
		if err != nil {
			return nil, err
		}
		return installation.ConfigInUse(ctx, client, s.namespace)
	})
}

// agents returns the DaemonSet.
func (s *scene) agents(ctx context.Context) (*appsv1.DaemonSet, error) {
	return s.daemonSet.once(func() (*appsv1.DaemonSet, error) {
		return s.me.AppsV1().DaemonSets(s.namespace).Get(ctx, account, metav1.GetOptions{})
	})
}
