package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/taintlet/taintlet/test/process"
)

// helperEnv makes the test binary a process that starts a cluster, says what
// it started, and waits to be killed.
const helperEnv = "TAINTLET_TEST_CLUSTER_HELPER"

var shared Shared

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(helper())
	}
	os.Exit(shared.Run(m))
}

func TestStartServesTheVersionThatWasBuilt(t *testing.T) {
	c := shared.Require(t)
	want, err := KubernetesVersion()
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != want || "v"+got.Major+"."+got.Minor != want[:strings.LastIndex(want, ".")] {
		t.Errorf("server is %s (%s.%s), want %s", got.GitVersion, got.Major, got.Minor, want)
	}
}

func TestIdentities(t *testing.T) {
	c := shared.Require(t)
	alice, err := c.Config("alice", "operators", "readers")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, user, group string
		config            *rest.Config
	}{
		{"administrator", "admin", "system:masters", c.Admin()},
		{"user with groups", "alice", "readers", alice},
		{"service account", "system:serviceaccount:default:default", "system:serviceaccounts", c.WithToken(accountToken(t, c))},
		{"kubeconfig of a user", "alice", "operators", throughKubeconfig(t, alice)},
		{"kubeconfig of the administrator", "admin", "system:masters", throughKubeconfig(t, c.Admin())},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := kubernetes.NewForConfigOrDie(test.config)
			review, err := client.AuthenticationV1().SelfSubjectReviews().
				Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := review.Status.UserInfo
			if got.Username != test.user || !strings.Contains(strings.Join(got.Groups, " "), test.group) {
				t.Errorf("API server sees %s %v, want %s in %s", got.Username, got.Groups, test.user, test.group)
			}
		})
	}
	if _, err := kubernetes.NewForConfigOrDie(alice).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without any role lists nodes: %v, want forbidden", err)
	}
}

func accountToken(t *testing.T, c *Cluster) string {
	t.Helper()
	request, err := c.Client().CoreV1().ServiceAccounts("default").
		CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func throughKubeconfig(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	read, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestNodeRegistersAndAPodIsBoundToIt(t *testing.T) {
	c := shared.Require(t)
	node := c.Register(t, "registers")
	pod := c.CreatePod(t, NewPod("bound", node.Name))
	bound, err := c.WaitPod(t.Context(), metav1.NamespaceDefault, pod, Scheduled)
	if err != nil {
		t.Fatal(err)
	}
	if bound.Spec.NodeName != node.Name {
		t.Errorf("pod is on %q, want %q", bound.Spec.NodeName, node.Name)
	}
	lease, err := c.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(lease.Spec.RenewTime.Time) > time.Minute {
		t.Errorf("lease was renewed at %s", lease.Spec.RenewTime)
	}
}

func TestNodeCorrectsForeignConditionsAndRenewsItsLease(t *testing.T) {
	c := shared.Require(t)
	node := c.Register(t, "corrects")
	leases := c.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease)
	before, err := leases.Get(t.Context(), node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := `{"status":{"conditions":[{"type":"PIDPressure","status":"True"}]}}`
	if _, err := c.Client().CoreV1().Nodes().PatchStatus(t.Context(), node.Name, []byte(patch)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitNode(t.Context(), node.Name, HasTaint(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitNode(t.Context(), node.Name, HasCondition(corev1.NodePIDPressure, corev1.ConditionFalse)); err != nil {
		t.Fatal(err)
	}
	after, err := leases.Get(t.Context(), node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !after.Spec.RenewTime.After(before.Spec.RenewTime.Time) {
		t.Errorf("lease was last renewed at %s, as before", after.Spec.RenewTime)
	}
	if err := node.Stop(); err != nil {
		t.Error(err)
	}
}

func TestConditionOfTheKubeletBecomesATaint(t *testing.T) {
	c := shared.Require(t)
	node := c.Register(t, "condition")
	tainted := HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	for _, step := range []struct {
		status corev1.ConditionStatus
		want   func(*corev1.Node) bool
	}{
		{corev1.ConditionTrue, tainted},
		{corev1.ConditionFalse, Not(tainted)},
	} {
		if err := node.SetCondition(t.Context(), corev1.NodeMemoryPressure, step.status); err != nil {
			t.Fatal(err)
		}
		if _, err := c.WaitNode(t.Context(), node.Name, step.want); err != nil {
			t.Fatal(err)
		}
	}
}

// The fact that the policy and the stand-ins are there for.
func TestControllerDeletesAForeignWellKnownTaint(t *testing.T) {
	c := shared.Require(t)
	node := c.Register(t, "deletes")
	written := c.SetTaints(t, node.Name, taint(corev1.TaintNodeMemoryPressure), taint("example.com/foreign"))
	if !HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)(written) {
		t.Fatalf("the API server did not take the taint: %v", written.Spec.Taints)
	}
	after, err := c.WaitNode(t.Context(), node.Name, Not(HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)))
	if err != nil {
		t.Fatal(err)
	}
	if !HasTaint("example.com/foreign", corev1.TaintEffectNoSchedule)(after) {
		t.Errorf("the foreign taint went too: %v", after.Spec.Taints)
	}
}

func TestWithoutControllerManagerAndSchedulerNobodyInterferes(t *testing.T) {
	c := New(t, Options{WithoutControllerManager: true, WithoutScheduler: true, AuditLog: true})
	if got := c.Processes(); len(got) != 2 || got[Etcd] == 0 || got[APIServer] == 0 {
		t.Errorf("running: %v, want etcd and the API server", got)
	}
	node := c.Register(t, "alone")
	c.SetTaints(t, node.Name, taint(corev1.TaintNodeMemoryPressure))
	Eventually(t, "the administrator's write in the audit log", func() error {
		requests, err := c.Requests("admin")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			if r.Resource() == "nodes" && r.ObjectRef.Name == node.Name && strings.Contains(string(r.RequestObject), corev1.TaintNodeMemoryPressure) {
				return nil
			}
		}
		return fmt.Errorf("it is not among %d requests", len(requests))
	})
	if got := c.GetNode(t, node.Name).Spec.Taints; !sameTaints(got, []corev1.Taint{taint(corev1.TaintNodeMemoryPressure)}) {
		t.Errorf("taints %v, want the one that was set", got)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	SkipUnlessRequired(t)
	c, err := Start(t.Context(), Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RegisterNode(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}
	processes := c.Processes()
	if len(processes) != 4 {
		t.Errorf("running: %v, want four components", processes)
	}
	for range 2 { // the second time does nothing
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	for name, pid := range processes {
		if process.Running(pid) {
			t.Errorf("%s still runs", name)
		}
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster's folder is still there: %v", err)
	}
}

func TestStopTellsOfAComponentThatDied(t *testing.T) {
	SkipUnlessRequired(t)
	c, err := Start(t.Context(), Options{Progress: os.Stderr, WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.Processes()[Scheduler], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.components[2].Ended()
	err = c.Stop()
	if err == nil || !strings.Contains(err.Error(), "kube-scheduler ended by itself: signal: killed") {
		t.Errorf("Stop: %v, want that the scheduler was killed", err)
	}
}

func TestStartShowsTheLogOfAComponentThatFails(t *testing.T) {
	SkipUnlessRequired(t)
	before := folders(t)
	_, err := Start(t.Context(), Options{Args: map[string][]string{APIServer: {"--feature-gates=NoSuchGate=true"}}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended by itself") || !strings.Contains(err.Error(), "unrecognized feature gate: NoSuchGate") {
		t.Errorf("Start: %v, want the API server's complaint", err)
	}
	if after := folders(t); len(after) > len(before) {
		t.Errorf("folders %v, before %v", after, before)
	}
}

// Start tries again on this text, whichever component says it.
func TestATakenPortIsToldByItsText(t *testing.T) {
	SkipUnlessRequired(t)
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, flag := range map[string]string{
		Etcd:      "--listen-client-urls=http://" + listener.Addr().String(),
		APIServer: "--secure-port=" + port,
		Scheduler: "--secure-port=" + port,
	} {
		_, err := Start(t.Context(), Options{WithoutControllerManager: true, Args: map[string][]string{name: {flag}}})
		if err == nil || !strings.Contains(err.Error(), portTaken) || !strings.Contains(err.Error(), name) {
			t.Errorf("Start with %s %s: %v, want %q", name, flag, err, portTaken)
		}
	}
}

func folders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The kernel takes the end of the thread that forked a child for its parent's.
func TestComponentsOutliveThreads(t *testing.T) {
	c := shared.Require(t)
	pids := c.Processes()
	endThreads(64)
	c.Register(t, "threads") // takes all components but the scheduler
	if got := c.Processes(); !maps.Equal(got, pids) {
		t.Errorf("running: %v, want %v", got, pids)
	}
}

// started is what the helper process says of its cluster.
type started struct {
	Processes map[string]int
	Dir       string
}

func TestComponentsDieWithAKilledProcess(t *testing.T) {
	SkipUnlessRequired(t)
	t.Setenv("TMPDIR", t.TempDir()) // no other test makes or sweeps folders here
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), helperEnv+"=1")
	output := &process.Lines{}
	command.Stdout, command.Stderr = output, os.Stderr
	starter, err := process.Start("helper", command, "")
	if err != nil {
		t.Fatal(err)
	}
	var said started
	err = starter.WaitLines(t.Context(), output, func(lines []string) bool {
		return len(lines) > 0 && json.Unmarshal([]byte(lines[0]), &said) == nil
	})
	if err := errors.Join(err, starter.Kill()); err != nil {
		t.Fatal(err)
	}
	if len(said.Processes) != 4 {
		t.Errorf("the helper ran %v, want four components", said.Processes)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, pid := range said.Processes {
		if err := process.WaitGone(ctx, pid); err != nil {
			t.Errorf("%s outlives the process that started it: %v", name, err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	sweptByTheNext(t, said.Dir)
}

// sweptByTheNext checks that the folder that a killed process left goes when
// the next cluster makes its own.
func sweptByTheNext(t *testing.T, left string) {
	t.Helper()
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the killed process's folder: %v; want it left, or this test proves nothing", err)
	}
	dir, unlock, err := makeDir(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the killed process's folder is still there: %v", err)
	}
	if err := sweep(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a folder in use was swept: %v", err)
	}
}

// helper is the process that TestComponentsDieWithAKilledProcess kills.
func helper() int {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(started{c.Processes(), c.dir}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-context.Background().Done() // until it is killed
	return 0
}
