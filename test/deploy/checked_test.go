package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	shown "github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

const (
	memoryKey = corev1.TaintNodeMemoryPressure
	// held is the Node on which a taint is kept; its kubelet sees the same trouble, so
	// that the lifecycle controller leaves the taint alone whatever is broken. quiet has
	// an agent too, bare has none.
	held, quiet, bare = "held", "quiet", "bare"
)

// ownRelease is that of this program, which is that of the chart.
const ownRelease = "v0.1.0"

// scene is a cluster with an installation, of which one thing after another breaks.
type scene struct {
	t        *testing.T
	c        *cluster.Cluster
	manifest string
	program  string // the agent's binary
	plugin   string // kubectl-taintlet
	nodes    map[string]*cluster.Node
	host     *fixtures.Host // of the Node quiet
	agent    *bed.Agent     // the same
	// keeps says that deploy/keep.yaml is there; on older releases there are stand-ins.
	keeps bool
}

// install installs the chart, with agents on two of three Nodes.
func install(t *testing.T) *scene {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	s := &scene{t: t, c: checked.Require(t), nodes: map[string]*cluster.Node{}, keeps: cluster.HasMutatingAdmissionPolicy(t)}
	// A changed template must not end the pods to which the agents' tokens are bound.
	args := []string{"--set", "namespace.create=true,evict.slots=1,cleanup.afterUninstall=false,updateStrategy.type=OnDelete,updateStrategy.rollingUpdate=null"}
	if s.keeps {
		args = append(args, bed.KeepServed)
	}
	s.manifest = bed.Render(t, args...)
	// The agents use the configuration of the ConfigMap.
	inUse := "  config.yaml: |\n    " + strings.ReplaceAll(strings.TrimSpace(bed.ConfigHeader+quickly), "\n", "\n    ") + "\n---\n"
	s.manifest = regexp.MustCompile(`(?s)  config\.yaml: \|\n.*?\n---\n`).ReplaceAllLiteralString(s.manifest, inUse)
	bed.Apply(t.Context(), t, s.c, s.manifest)
	bed.WaitInForce(t.Context(), t, s.c, bed.Namespace, "taintlet-nodes", "taintlet-events", "taintlet-leases")
	s.serveDNS()
	s.runPods()
	dir := t.TempDir()
	var err error
	if s.program, err = process.BuildAgent(t.Context(), dir, process.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.plugin, err = process.BuildPlugin(t.Context(), dir, process.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{held, quiet, bare} {
		s.nodes[name] = s.c.Register(t, name)
		bed.PodOn(t, s.c, name)
		if name == bare {
			continue
		}
		s.startAgent(name)
	}
	if err := s.nodes[held].SetCondition(t.Context(), corev1.NodeMemoryPressure, corev1.ConditionTrue); err != nil {
		t.Fatal(err)
	}
	s.wait(held, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	if s.keeps {
		s.wait(held, func(n *corev1.Node) bool { return strings.Contains(n.Annotations["taintlet.dev/held"], memoryKey) })
	} else {
		s.wait(held, tainted("taintlet.dev/memory-pressure"))
	}
	s.wait(quiet, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	return s
}

// quickly makes recovery quick enough to be waited for, again and again.
const quickly = `eviction: {slots: 1}
memory: {debounce: {clearAfter: 1s}}
disk: {period: 500ms, debounce: {clearAfter: 1s}}
pid: {debounce: {clearAfter: 1s}}
network: {period: 1s, debounce: {clearAfter: 1s}}
writeBudget: {interval: 1s}
`

// startAgent starts the agent of a Node; the host of the Node held has no memory left.
func (s *scene) startAgent(name string) {
	s.t.Helper()
	configFile := filepath.Join(s.t.TempDir(), "config.yaml")
	if err := os.WriteFile(configFile, []byte(bed.ConfigHeader+quickly), 0o600); err != nil {
		s.t.Fatal(err)
	}
	host := fixtures.NewHost(s.t)
	if name == held {
		host.Memory(2)
	}
	args := append(host.Flags(), "--kubeconfig="+cluster.Kubeconfig(s.t, bed.AgentOf(s.t, s.c, name)), "--node-name="+name, "--config="+configFile, "--listen=")
	a := bed.StartAgent(s.t, s.program, args...)
	if name == quiet {
		s.host, s.agent = host, a
	}
}

func (s *scene) wait(node string, holds func(*corev1.Node) bool) {
	s.t.Helper()
	if _, err := s.c.WaitNode(s.t.Context(), node, holds); err != nil {
		s.t.Fatal(err)
	}
}

// serveDNS makes the EndpointSlice of a Service of the cluster's DNS, as RKE2 names it.
func (s *scene) serveDNS() {
	s.t.Helper()
	manifest := "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: " + dnsSlice + ", namespace: kube-system, " +
		"labels: {k8s-app: kube-dns, kubernetes.io/service-name: rke2-coredns-rke2-coredns}}, ports: [{name: tcp-53, port: 53, protocol: TCP}], " +
		"endpoints: [{addresses: [10.244.1.2], nodeName: quiet, targetRef: {kind: Pod, namespace: kube-system, name: rke2-coredns-1}}]}"
	bed.Apply(s.t.Context(), s.t, s.c, manifest)
}

// dnsSlice is the name of that EndpointSlice.
const dnsSlice = "rke2-coredns-rke2-coredns-1"

// runPods stands in for kubelets: it calls pods ready, with an address, and lets
// them go.
func (s *scene) runPods() {
	watcher, err := s.c.Client().CoreV1().Pods("").Watch(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(watcher.Stop)
	go func() {
		addresses := map[string]string{}
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" {
				continue
			}
			pods, ctx := s.c.Client().CoreV1().Pods(pod.Namespace), context.Background()
			if pod.DeletionTimestamp != nil {
				pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)) //nolint:errcheck // gone already, or the test waits in vain
				continue
			}
			if addresses[pod.Name] != "" {
				continue
			}
			addresses[pod.Name] = fmt.Sprintf("192.0.2.%d", len(addresses)+1)
			pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, ready(addresses[pod.Name], "True"), metav1.PatchOptions{}, "status") //nolint:errcheck // the same
		}
	}()
}

// ready is the status of a pod.
func ready(address, status string) []byte {
	return fmt.Appendf(nil, `{"status": {"phase": "Running", "hostIP": %q, "hostIPs": [{"ip": %[1]q}], "podIP": %[1]q, "podIPs": [{"ip": %[1]q}],
		"conditions": [{"type": "Ready", "status": %q}, {"type": "PodScheduled", "status": "True"}]}}`, address, status)
}

// run runs the check and returns its lines by name, and the text.
func run(ctx context.Context, config *rest.Config, pre bool) (lines map[string]check.Line, isWell bool, err error) {
	var out strings.Builder
	isWell, err = check.Run(ctx, check.Options{Config: config, Out: &out, Output: "json", Namespace: bed.Namespace, Pre: pre, Version: ownRelease})
	if err != nil {
		return nil, false, err
	}
	var report check.Report
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		return nil, false, err
	}
	lines = map[string]check.Line{}
	for _, line := range report.Lines {
		lines[line.Name] = line
	}
	return lines, isWell, nil
}

// becomes waits until a line is in that state and its text matches, and checks that
// the exit code and the remedy go with it.
func (s *scene) becomes(config *rest.Config, pre bool, name string, state shown.Severity, pattern string) {
	s.t.Helper()
	var found check.Line
	cluster.Eventually(s.t, name+" "+string(state), func() error {
		lines, isWell, err := run(s.t.Context(), config, pre)
		if err != nil {
			return err
		}
		found = lines[name]
		if found.Severity != state || !regexp.MustCompile(pattern).MatchString(found.Text) {
			return fmt.Errorf("it says %s: %s", found.Severity, found.Text)
		}
		if state == check.Failed && isWell {
			return fmt.Errorf("a check failed and all is well")
		}
		if hasRemedy := found.Remedy != "" && found.Link != ""; hasRemedy != slices.Contains([]shown.Severity{check.Failed, check.Warning}, state) {
			return fmt.Errorf("remedy %q, link %q", found.Remedy, found.Link)
		}
		return nil
	})
	s.t.Logf("%s %s: %s\n", found.Severity, found.Name, found.Text)
}

// allGreen waits until nothing is wrong, and returns the text.
func (s *scene) allGreen(pre bool) string {
	s.t.Helper()
	cluster.Eventually(s.t, "all lines are green", func() error {
		lines, isWell, err := run(s.t.Context(), s.c.Admin(), pre)
		if err != nil || !isWell {
			err = fmt.Errorf("not all is well: %w", err)
		}
		for _, line := range lines {
			if line.Severity != s.best(line.Name) {
				err = fmt.Errorf("%s: %s: %s", line.Name, line.Severity, line.Text)
			}
		}
		return err
	})
	text, _ := s.print(pre)
	return text
}

// best is the state of a line while nothing is wrong. A release without
// MutatingAdmissionPolicy warns before an installation.
func (s *scene) best(line string) shown.Severity {
	if !s.keeps && line == "mutating" {
		return check.Warning
	}
	return check.OK
}

// print returns what people see.
func (s *scene) print(pre bool) (text string, isWell bool) {
	s.t.Helper()
	var out strings.Builder
	isWell, err := check.Run(s.t.Context(), check.Options{Config: s.c.Admin(), Out: &out, Namespace: bed.Namespace, Pre: pre, Version: ownRelease})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.String(), isWell
}
