package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// previous is what is upgraded from. There is no earlier release, so it is the last commit
// whose record knew neither soft taints nor repairs nor taints that stay.
const previous = "55dc471c5438"

// An older agent and this one follow each other on a Node with a taint. Each takes over
// the other's record, no version of the Node lacks the taint, and the last agent removes
// it, whichever of the two set it.
func TestUpgradeAndRollback(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	older := olderAgent(t)
	newer, err := process.BuildAgent(t.Context(), t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := shared.Require(t)
	for name, turns := range map[string][]string{"upgraded": {older, newer}, "rolled-back": {newer, older}, "tried": {older, newer, older, newer}} {
		t.Run(name, func(t *testing.T) {
			c.Register(t, name)
			takeTurns(t, c, name, turns)
		})
	}
}

// takeTurns runs one program after the other on a Node.
//
//nolint:thelper // its lines are the test's
func takeTurns(t *testing.T, c *cluster.Cluster, node string, programs []string) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(bed.ConfigHeader+quickly), 0o600); err != nil {
		t.Fatal(err)
	}
	host := fixtures.NewHost(t)
	args := append(host.Flags(), "--kubeconfig="+cluster.Kubeconfig(t, bed.AgentOf(t, c, node)), "--node-name="+node, "--config="+config, "--listen=")
	wait := func(holds func(*corev1.Node) bool) *corev1.Node {
		t.Helper()
		found, err := c.WaitNode(t.Context(), node, holds)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	host.Memory(2)
	agent := bed.StartAgent(t, programs[0], args...)
	now := wait(hasMemoryTaint)
	since := now.ResourceVersion
	for _, program := range programs[1:] {
		wait(cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue)) // written after the taint
		agent.Terminate()
		before := readRecord(t, c.GetNode(t, node))
		agent = bed.StartAgent(t, program, args...)
		now = wait(func(n *corev1.Node) bool { return readRecord(t, n).Instance.Name != before.Instance.Name })
		after := readRecord(t, now)
		if !slices.Equal(after.Owned, before.Owned) || after.Conditions["MemoryPressure"] != before.Conditions["MemoryPressure"] {
			t.Errorf("%s took over %+v as %+v", program, before, after)
		}
	}
	staysUntil(t, c, now, since)
	host.Memory(50)
	wait(cluster.Not(hasMemoryTaint))
}

// record is what both agents know of it.
type record struct {
	Instance struct {
		Name string
	}
	Owned      []taints.Pair
	Conditions map[string]struct {
		Level   string
		Penalty float64
	}
}

func readRecord(t *testing.T, node *corev1.Node) (r record) {
	t.Helper()
	if err := json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &r); err != nil {
		t.Fatalf("%v: %q", err, node.Annotations[taints.RecordAnnotation])
	}
	return r
}

// hasMemoryTaint holds with the well-known taint or its stand-in.
func hasMemoryTaint(node *corev1.Node) bool {
	return tainted(memoryKey)(node) || tainted("taintlet.dev/memory-pressure")(node)
}

// staysUntil fails if any version of the Node lacks the taint, from the one after the
// version since until this one.
func staysUntil(t *testing.T, c *cluster.Cluster, node *corev1.Node, since string) {
	t.Helper()
	watcher, err := c.Client().CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: since, FieldSelector: fields.OneTermEqualSelector("metadata.name", node.Name).String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		version, ok := event.Object.(*corev1.Node)
		if !ok || !hasMemoryTaint(version) {
			t.Fatalf("the taint was away: %+v", event.Object)
		}
		if version.ResourceVersion == node.ResourceVersion {
			return
		}
	}
	t.Fatal("the watch ended early")
}

// olderAgent builds the agent of the commit previous.
func olderAgent(t *testing.T) (program string) {
	t.Helper()
	folder := t.TempDir()
	git := []string{"-C", "../..", "-c", "safe.directory=*"}                                                                      // somebody else may own the checkout
	if err := exec.CommandContext(t.Context(), "git", append(git, "cat-file", "-e", previous+"^{commit}")...).Run(); err != nil { //nolint:gosec // our own arguments
		t.Skipf("this clone's history lacks the commit %s, of which the older agent is built", previous)
	}
	program = filepath.Join(folder, "older")
	for _, args := range [][]string{
		slices.Concat([]string{"git"}, git, []string{"archive", "--output=" + folder + "/source.tar", previous}),
		{"tar", "-xf", folder + "/source.tar", "-C", folder},
		slices.Concat([]string{"go", "build", "-C", folder, "-buildvcs=false", "-o", program}, process.Lean(), []string{"./cmd/taintlet"}),
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:gosec // the same
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	return program
}
