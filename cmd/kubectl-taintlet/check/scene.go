package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
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
	// tellsWhoAsks is the field manager of dry runs that do not act as an agent.
	tellsWhoAsks = "taintlet-check"
)

// scene is the data that the checks share, read before the first check.
type scene struct {
	config    *rest.Config
	me        *installation.Client
	namespace string
	port      int // of the hosts, where the agents listen

	version    string
	versionErr error

	// readErr says why the Nodes and what is installed could not be read.
	readErr      error
	names        []string
	report       status.Report
	installation *installation.Installation
	// inUse is the configuration that the agents use; nil: it is not known.
	inUse *config.Config
	// untainted is a Node without the taint with which the policy that keeps taints is tried;
	// empty: none.
	untainted string
	// overridden are the configurations of the overrides that apply to a Node.
	overridden map[*config.Config]bool
	// said are Nodes with a remark about each, by the names of checks.
	said map[string][]string
}

func newScene(ctx context.Context, o Options) (*scene, error) {
	me, err := installation.NewClient(o.Config)
	if err != nil {
		return nil, err
	}
	s := &scene{config: o.Config, me: me, namespace: o.Namespace, port: cmp.Or(o.Port, installation.DefaultPort), overridden: map[*config.Config]bool{}, said: map[string][]string{}}
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	s.readErr = s.read(ctx, o.Version)
	return s, ctx.Err()
}

// reach asks for the version of the API server. If the server does not answer, or does not
// authenticate the user, no other check runs.
func (s *scene) reach(ctx context.Context) error {
	version, err := s.me.Discovery().ServerVersionWithContext(ctx)
	if err == nil {
		s.version = version.GitVersion
	}
	var answered apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept your credentials: %w", s.config.Host, err)
	case err != nil && !errors.As(err, &answered):
		return fmt.Errorf("the API server %s does not answer: %w", s.config.Host, err)
	}
	s.versionErr = err
	return nil
}

// as returns a client that impersonates an account, with the token of a pod on that Node; empty:
// of no pod.
func (s *scene) as(namespace, account, node string) (*installation.Client, error) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = installation.User(namespace, account)
	if node != "" {
		config.Impersonate.Extra = map[string][]string{nodeExtra: {node}}
	}
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

// errNoNodes says that a check needs Nodes.
var errNoNodes = errors.New("the cluster has no Nodes")

func (s *scene) read(ctx context.Context, program string) error {
	i, err := s.me.Read(ctx, s.namespace)
	if err != nil {
		return err
	}
	s.installation = i
	s.inUse, _ = i.Configuration() // what is wrong with it is a Finding
	policy := cmp.Or(s.inUse, config.Default()).Policy()
	fleet := status.NewFleet(nil, 0)
	fleet.Version = program
	fleet.SetInstallation(i)
	err = s.me.EachNode(ctx, func(node *taints.Node) {
		fleet.Add(node)
		s.add(node, policy)
	})
	switch {
	case err != nil:
		return err
	case len(s.names) == 0:
		return errNoNodes
	}
	s.report = fleet.Report(s.me.Now())
	return nil
}

func (s *scene) add(node *taints.Node, policy *decide.Policy) {
	name := strings.Clone(node.Name)
	s.names = append(s.names, name)
	say := func(check, format string, args ...any) {
		s.said[check] = append(s.said[check], name+fmt.Sprintf(format, args...))
	}
	if s.inUse != nil && s.inUse.For(node.Labels) != s.inUse {
		s.overridden[s.inUse.For(node.Labels)] = true
	}
	if node.OS == "linux" && isOldKernel(node.Kernel) {
		say("kernel", " (%s)", node.Kernel)
	}
	for _, condition := range policy.Conditions {
		ours := node.Condition(decide.ConditionType(condition.Name))
		if ours == nil {
			continue
		}
		if ours.Status == taints.ConditionUnknown && ours.Reason != describe.ReasonBraked {
			say("unknown", " (%s: %s)", ours.Type, ours.Reason)
		}
		if strings.Contains(ours.Message, pid.OtherNamespace) {
			say("host-pid", "")
		}
		theirs := node.Condition(string(condition.Name))
		if theirs != nil && theirs.Status == taints.ConditionTrue && ours.Status == taints.ConditionFalse {
			say("kubelet", " (%s)", condition.Name)
		}
	}
	if s.untainted == "" && !node.Has(keptPair()) {
		s.untainted = name
	}
}

// isOldKernel reports whether Linux is older than 4.20, which brought PSI. An unreadable version
// does not count as old.
func isOldKernel(release string) bool {
	found, err := version.ParseGeneric(release)
	return err == nil && found.LessThan(version.MajorMinor(4, 20))
}

func denied(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

func mayNotImpersonate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "impersonate")
}

func (s *scene) agents() (*appsv1.DaemonSet, error) {
	for _, d := range s.installation.DaemonSets {
		if d.Name == account {
			return d, nil
		}
	}
	return nil, untold("the DaemonSet " + account + " does not exist, or cannot be read")
}
