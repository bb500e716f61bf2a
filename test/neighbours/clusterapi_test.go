package neighbours

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// managed is a Cluster of Cluster API that is the control plane itself. %s is a kubeconfig.
const managed = `
apiVersion: v1
kind: Secret
metadata: {name: example-kubeconfig, namespace: default, labels: {cluster.x-k8s.io/cluster-name: example}}
type: cluster.x-k8s.io/secret
stringData: {value: %s}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: example, namespace: default}
spec:
  controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: ExampleCluster, name: example}
`

// machine is a Machine of the Cluster, named after its Node.
const machine = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: %s
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: example, cluster.x-k8s.io/deployment-name: workers}
spec:
  clusterName: example
  bootstrap: {dataSecretName: example}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: ExampleMachine, name: %[1]s}
`

// clusterAPI is the real controller for MachineHealthChecks.
type clusterAPI struct {
	cluster *cluster.Cluster
	client  dynamic.Interface
}

// startClusterAPI starts it as the administrator, for the length of the test, with a Cluster
// that has started.
func startClusterAPI(t *testing.T, c *cluster.Cluster) *clusterAPI {
	t.Helper()
	folder, err := process.ModuleFolder(t.Context(), "clusterapi", "sigs.k8s.io/cluster-api")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"clusters", "machines", "machinepools", "machinehealthchecks"} {
		if err := c.Apply(t.Context(), filepath.Join(folder, "core/config/crd/bases/cluster.x-k8s.io_"+kind+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig(t, c.Admin()))
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(string(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	own := bed.ManifestFile(t, fmt.Sprintf(managed, quoted))
	cluster.Eventually(t, "the kinds of Cluster API", func() error { return c.Apply(t.Context(), own) })
	a := &clusterAPI{cluster: c}
	if a.client, err = dynamic.NewForConfig(c.Admin()); err != nil {
		t.Fatal(err)
	}
	a.patchStatus(t, "clusters", "example", map[string]any{
		"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions":     []any{isTrue("InfrastructureReady"), isTrue("ControlPlaneInitialized")},
	})
	command := exec.Command(build(t, "clusterapi", "clusterapi")) //nolint:gosec // it lives until it is ended
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t, c.Admin()))
	bed.StartProgram(t, "Cluster API", command, &process.Lines{})
	return a
}

// isTrue is a condition of Cluster API.
func isTrue(kind string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": metav1.Now()}
}

func (a *clusterAPI) kind(resource string) dynamic.ResourceInterface {
	return a.client.Resource(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: resource}).Namespace(metav1.NamespaceDefault)
}

func (a *clusterAPI) patchStatus(t *testing.T, resource, name string, status map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.kind(resource).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// join registers a Node with its Machine.
func (a *clusterAPI) join(t *testing.T, name string) *cluster.Node {
	t.Helper()
	node := a.cluster.Register(t, name)
	bed.Apply(t.Context(), t, a.cluster, fmt.Sprintf(machine, name))
	a.patchStatus(t, "machines", name, map[string]any{"nodeRef": map[string]any{"name": name}})
	return node
}

// wait waits until an object has the condition with that status, and returns its message.
func (a *clusterAPI) wait(t *testing.T, resource, name, kind, status string) (message string) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("%s %s of %s", kind, status, name), func() error {
		found, err := a.kind(resource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, entry := range conditions {
			if condition, _ := entry.(map[string]any); condition["type"] == kind && condition["status"] == status {
				message, _ = condition["message"].(string)
				return nil
			}
		}
		return fmt.Errorf("conditions %v", conditions)
	})
	return message
}

// With the MachineHealthCheck of docs/neighbours.md, Cluster API asks for the repair of the
// Machine whose Node needs one by HostRepairNeeded, as of one whose Node is not Ready, and of
// none for the pressure that taintlet or the kubelet reports. It repairs nothing while too many
// are unhealthy.
func TestClusterAPIBesideTaintlet(t *testing.T) {
	requireNeighbours(t)
	c := plain.Require(t)
	a := startClusterAPI(t, c)
	of := troubles()
	pressed, ours, cutOff := a.join(t, "capi-kubelet"), a.join(t, "capi-memory"), a.join(t, "capi-network")
	broken, healthy := a.join(t, "capi-broken"), a.join(t, "capi-healthy")
	// The test does not wait for 300 s.
	check := strings.ReplaceAll(example(t, "apiVersion: cluster.x-k8s.io/"), "timeoutSeconds: 300", "timeoutSeconds: 3")
	bed.Apply(t.Context(), t, c, strings.Replace(check, "name: workers", "name: workers\n  namespace: default", 1))
	for _, node := range []*cluster.Node{pressed, ours, cutOff, broken, healthy} {
		a.wait(t, "machines", node.Name, "HealthCheckSucceeded", "True")
	}

	if err := pressed.SetCondition(t.Context(), corev1.NodeMemoryPressure, corev1.ConditionTrue); err != nil {
		t.Fatal(err)
	}
	of[1].begin(startAgent(t, c, ours.Name))
	waitNode(t, c, ours.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	of[3].begin(startAgent(t, c, cutOff.Name))
	waitNode(t, c, cutOff.Name, cluster.HasCondition(decide.RepairType, corev1.ConditionTrue))
	if message := a.wait(t, "machines", cutOff.Name, "OwnerRemediated", "False"); message != "Waiting for remediation" {
		t.Errorf("the repair of %s: %s", cutOff.Name, message)
	}
	if message := a.wait(t, "machines", cutOff.Name, "HealthCheckSucceeded", "False"); !strings.Contains(message, decide.RepairType) {
		t.Errorf("%s is unhealthy: %s", cutOff.Name, message)
	}
	// The trouble of these is older.
	for _, node := range []*cluster.Node{pressed, ours} {
		a.wait(t, "machines", node.Name, "HealthCheckSucceeded", "True")
	}
	for _, node := range []*cluster.Node{broken, healthy} {
		if err := node.SetCondition(t.Context(), corev1.NodeReady, corev1.ConditionFalse); err != nil {
			t.Fatal(err)
		}
		a.wait(t, "machines", node.Name, "HealthCheckSucceeded", "False")
	}
	if message := a.wait(t, "machinehealthchecks", "workers", "RemediationAllowed", "False"); !strings.Contains(message, "total: 5, unhealthy: 3") {
		t.Errorf("remediation is not allowed: %s", message)
	}
}
