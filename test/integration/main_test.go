// Package integration runs the agent as users run it, as a process, against a
// real API server, controller manager and scheduler.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
)

// keeping has the admission policy of deploy/keep.yaml, plain has not. unusual
// has no controller manager, and an admission plugin that is off by default.
var (
	keeping, plain controlPlane

	unusual = controlPlane{options: cluster.Options{WithoutControllerManager: true, Args: map[string][]string{
		cluster.APIServer: {"--enable-admission-plugins=PodTolerationRestriction"},
	}}}
)

// inParallel is how many tests run at a time unless -parallel says otherwise.
// They wait far more than they compute, so the number of CPUs is no measure.
const inParallel = "16"

func TestMain(m *testing.M) {
	if count := os.Getenv(threadsEnv); count != "" {
		os.Exit(holdThreads(count))
	}
	if err := flag.Set("test.parallel", inParallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, p := range []*controlPlane{&keeping, &plain, &unusual} {
		code = max(code, p.stop())
	}
	os.RemoveAll(binary.dir) //nolint:errcheck // a temporary folder
	os.Exit(code)
}

// controlPlane is started by the first test that needs it.
type controlPlane struct {
	options cluster.Options

	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

func (p *controlPlane) require(t *testing.T) *cluster.Cluster {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	if p == &keeping {
		cluster.SkipWithoutMutatingAdmissionPolicy(t)
	}
	p.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		p.options.AuditLog, p.options.Progress = true, os.Stderr
		if p.cluster, p.err = cluster.Start(ctx, p.options); p.err != nil {
			return
		}
		grantAgents(ctx, t, p.cluster)
		if p == &keeping {
			p.err = p.cluster.InstallKeep(ctx)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.cluster
}

// pressured returns a control plane on which the agent's taint of a well-known
// key stays, and the key it has there: the policy keeps it, or, on a release
// that cannot have the policy, it is the stand-in.
func pressured(t *testing.T, key string) (*cluster.Cluster, string) {
	t.Helper()
	if cluster.HasMutatingAdmissionPolicy(t) {
		return keeping.require(t), key
	}
	_, word, _ := strings.Cut(key, "/")
	return plain.require(t), "taintlet.dev/" + word
}

// stop fails when a request of an agent was refused by the permissions and the
// policies as shipped.
func (p *controlPlane) stop() int {
	if p.cluster == nil {
		return 0
	}
	if err := errors.Join(noneRefused(p.cluster), p.cluster.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (p *controlPlane) grantTo(ctx context.Context, name, user string, rules []rbacv1.PolicyRule) error {
	roles := p.cluster.Client().RbacV1()
	meta := metav1.ObjectMeta{Name: name}
	if _, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	return err
}

// binary is the agent, built once.
var binary struct {
	once sync.Once
	dir  string
	err  error
}

// agentBinary builds the agent, with the race detector when the tests have it.
func agentBinary(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		if binary.dir, binary.err = os.MkdirTemp("", "taintlet-integration-"); binary.err != nil { //nolint:usetesting // it outlives the test
			return
		}
		args := []string{"build", "-o", binary.dir}
		if raceEnabled {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "github.com/taintlet/taintlet/cmd/taintlet")...).CombinedOutput()
		if err != nil {
			binary.err = fmt.Errorf("build the agent: %w\n%s", err, out)
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return filepath.Join(binary.dir, "taintlet")
}
