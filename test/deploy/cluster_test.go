package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// monitoringCRDs stand in for those of the Prometheus operator: their kinds,
// not their schemas.
const monitoringCRDs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: PodMonitor, plural: podmonitors, singular: podmonitor}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: PrometheusRule, plural: prometheusrules, singular: prometheusrule}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// The real API server accepts what the chart renders, with every combination of
// the values that change objects.
func TestEveryCombinationIsAccepted(t *testing.T) {
	c := shared.Require(t)
	bed.Apply(t.Context(), t, c, monitoringCRDs)
	kubectl := bed.NewConsole(t, c)
	cluster.Eventually(t, "the kinds of the Prometheus operator", func() error {
		_, err := c.Client().Discovery().ServerResourcesForGroupVersion("monitoring.coreos.com/v1")
		return err
	})
	for _, keys := range []config.Keys{config.WellKnownKeys, config.OwnKeys} {
		if keys == config.WellKnownKeys && !cluster.HasMutatingAdmissionPolicy(t) {
			continue
		}
		for _, slots := range []int{0, 2} {
			for _, monitoring := range []bool{false, true} {
				for _, atEnd := range []bool{false, true} {
					values := map[string]any{
						"evict": map[string]any{"slots": slots}, "config": map[string]any{"keys": keys},
						"monitoring": map[string]any{"podMonitor": monitoring, "prometheusRules": monitoring},
						"cleanup":    map[string]any{"afterUninstall": atEnd, "stale": monitoring},
					}
					manifest := bed.Render(t, bed.KeepServed, "-f", bed.ValuesFile(t, values))
					wantObjects(t, manifest, values)
					kubectl.Run("kubectl apply --dry-run=server --validate=strict -f " + bed.ManifestFile(t, manifest))
				}
			}
		}
	}
}

// wantObjects checks that the values change what they are there for.
func wantObjects(t *testing.T, manifest string, values map[string]any) {
	t.Helper()
	monitoring := values["monitoring"].(map[string]any)["podMonitor"] == true
	slots := values["evict"].(map[string]any)["slots"].(int)
	for text, wanted := range map[string]bool{
		"kind: MutatingAdmissionPolicy\n": values["config"].(map[string]any)["keys"] == config.WellKnownKeys,
		"kind: Lease\n":                   slots > 0,
		"name: taintlet-leases\n":         slots > 0,
		"kind: PodMonitor\n":              monitoring,
		"kind: PrometheusRule\n":          monitoring,
		"kind: CronJob\n":                 monitoring,
		"helm.sh/hook: post-delete\n":     values["cleanup"].(map[string]any)["afterUninstall"] == true,
		"kind: Namespace\n":               false,
	} {
		if strings.Contains(manifest, text) != wanted {
			data, _ := json.Marshal(values)
			t.Errorf("%s: %q: want %v", data, text, wanted)
		}
	}
}

// The policy that keeps taints follows what the cluster can do, and own keys need none.
func TestKeepFollowsTheCluster(t *testing.T) {
	const group, kind = "admissionregistration.k8s.io/", "/MutatingAdmissionPolicy"
	for served, version := range map[string]string{
		group + "v1" + kind: "v1",
		group + "v1" + kind + "," + group + "v1beta1" + kind: "v1",
		group + "v1beta1" + kind:                             "v1beta1",
		group + "v1alpha1" + kind:                            "",
		"another.example.com/v1":                             "",
	} {
		rendered := bed.Render(t, "--api-versions="+served)
		for _, suffix := range []string{"", "Binding"} {
			object := "apiVersion: " + group + version + "\nkind: MutatingAdmissionPolicy" + suffix + "\n"
			if got := strings.Contains(rendered, object); got != (version != "") {
				t.Errorf("%s: %q is there: %v", served, object, got)
			}
		}
	}
}

// The DaemonSet goes onto each Node that has a host, whatever its taints, and
// asks Pod Security for the host's namespaces and nothing else.
func TestDaemonSet(t *testing.T) {
	c := shared.Require(t)
	c.Register(t, "virtual")
	c.Register(t, "evacuated")
	for name, patch := range map[string]string{
		"virtual":   `{"metadata": {"labels": {"type": "virtual-kubelet"}}}`,
		"evacuated": `{"spec": {"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoExecute"}, {"key": "example.com/none", "effect": "NoSchedule"}]}}`,
	} {
		if err := bed.PatchNode(t.Context(), c.Client(), name, types.MergePatchType, patch); err != nil {
			t.Fatal(err)
		}
	}
	bed.PodOn(t, c, "evacuated")
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type!=virtual-kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "as many pods as Nodes with hosts", func() error {
		set, err := c.Client().AppsV1().DaemonSets(namespace).Get(t.Context(), account, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if set.Status.ObservedGeneration != set.Generation || int(set.Status.DesiredNumberScheduled) != len(nodes.Items) {
			return fmt.Errorf("%d Nodes, and of generation %d the status is %+v", len(nodes.Items), set.Generation, set.Status)
		}
		return nil
	})

	var warnings warningList
	admin := c.Admin()
	admin.WarningHandler = &warnings
	_, err = bed.Client(t, admin).CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(warnings, "\n")
	if !strings.Contains(said, "taintlet-") || !strings.HasSuffix(said, ": host namespaces, hostPort, probe or lifecycle host") {
		t.Errorf("Pod Security says:\n%s", said)
	}
}

type warningList []string

func (w *warningList) HandleWarningHeader(_ int, _, text string) {
	if strings.HasPrefix(text, account) {
		*w = append(*w, text)
	}
}

// The API server puts the agents' requests into two priority levels of their own: a
// taint and what it waits for do not queue behind what only tells of it.
func TestFlowSchemas(t *testing.T) {
	c := shared.Require(t)
	c.Register(t, "flow")
	agent, err := rest.HTTPClientFor(bed.AgentOf(t, c, "flow"))
	if err != nil {
		t.Fatal(err)
	}
	taints, reads, background := flow{account, account}, flow{account + "-reads", account}, flow{account + "-background", account + "-background"}
	for request, want := range map[string]flow{
		"PATCH /api/v1/nodes/flow": taints,
		"PUT /apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/taintlet-evict-0": taints,
		"GET /api/v1/nodes":      reads,
		"GET /api/v1/nodes/flow": reads,
		"GET /api/v1/nodes?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dflow":        reads,
		"GET /apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/taintlet-evict-0":   reads,
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/flow":                 reads,
		"GET /apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/taintlet-keep": reads,
		"GET /apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/taintlet-keep":       reads,
		"PATCH /api/v1/nodes/flow/status":                                           background,
		"POST /api/v1/namespaces/default/events":                                    background,
		"GET /apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices": background,
		"GET /api/v1/namespaces/kube-system/secrets":                                background,
	} {
		verb, path, _ := strings.Cut(request, " ")
		cluster.Eventually(t, fmt.Sprintf("%s in the flow %v", request, want), func() error { return isAtLevel(t, c, agent, verb, path, want) })
	}
}

// flow names a FlowSchema and its priority level.
type flow struct{ schema, level string }

// isAtLevel makes a request, which need not succeed, and compares FlowSchema and
// priority level with those of the names.
func isAtLevel(t *testing.T, c *cluster.Cluster, agent *http.Client, verb, path string, want flow) error {
	t.Helper()
	schema, err := c.Client().FlowcontrolV1().FlowSchemas().Get(t.Context(), want.schema, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	level, err := c.Client().FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), want.level, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), verb, c.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := agent.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close() //nolint:errcheck // only the header matters
	for header, want := range map[string]types.UID{
		"X-Kubernetes-PF-FlowSchema-UID": schema.UID, "X-Kubernetes-PF-PriorityLevel-UID": level.UID,
	} {
		if uid := response.Header.Get(header); uid != string(want) {
			return fmt.Errorf("%s is %s, want %s", header, uid, want)
		}
	}
	return nil
}
