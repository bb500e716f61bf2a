package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keepWrite is one write of a Node's taints under the policy.
type keepWrite struct {
	name, user          string
	held                string // the annotation before the write
	before, write, want []corev1.Taint
}

// What the policy does to single writes, by who writes what.
func TestKeepChangesOnlyTheControllersWrites(t *testing.T) {
	SkipWithoutMutatingAdmissionPolicy(t)
	c := alone.Require(t)
	c.Keep(t)
	const name = "writes-of-keep"
	createNode(t, c, name)
	before := failures(t, c)
	for _, test := range slices.Concat(controllersWrites(), othersWrites(), foreignPairs(), annotations()) {
		t.Run(test.name, func(t *testing.T) {
			c.PatchNode(t, name, heldAndTaints(test.held, test.before...))
			change := map[string]any{"spec": map[string]any{"taints": test.write}}
			if got := write(t, c, test.user, name, change).Spec.Taints; !sameTaints(got, test.want) {
				t.Errorf("taints %s, want %s", show10(got), show10(test.want))
			}
		})
	}
	t.Run("the write changes the annotation", func(t *testing.T) { annotationInTheWrite(t, c, name) })
	t.Run("the Node is being deleted", func(t *testing.T) { deletedNode(t, c) })
	t.Run("what is no update of nodes", func(t *testing.T) { otherOperations(t, c, name) })
	if got := failures(t, c); got[0] != before[0] || got[1] != before[1]+1 {
		t.Errorf("the policy's conditions and mutation failed %v times, and %v before; want the mutation once, in the row that wants it", got, before)
	}
}

// failures are how often the policy's conditions and its mutation failed. failurePolicy hides
// what goes wrong; the API server's counters do not.
func failures(t *testing.T, c *Cluster) [2]int {
	t.Helper()
	return [2]int{
		counted(t, c, "apiserver_admission_match_condition_evaluation_errors_total{"),
		counted(t, c, `apiserver_mutating_admission_policy_check_total{error_type="invalid_error"`),
	}
}

func controllersWrites() []keepWrite {
	first, second, added := taint("example.com/first"), taint("example.com/second"), taint("example.com/added")
	revalued := corev1.Taint{Key: "example.com/first", Value: "new", Effect: corev1.TaintEffectNoSchedule}
	many, tooMany := foreignTaints(1000), foreignTaints(20000)
	return []keepWrite{
		{"the controller removes a held taint", controllerUser, memory, []corev1.Taint{first, taint(memory), second}, []corev1.Taint{first, second}, []corev1.Taint{first, taint(memory), second}},
		{"under its other name", controllerUserKM, memory, []corev1.Taint{taint(memory)}, nil, []corev1.Taint{taint(memory)}},
		{"it adds, revalues and removes", controllerUser, memory, []corev1.Taint{first, taint(memory), second}, []corev1.Taint{added, revalued}, []corev1.Taint{revalued, taint(memory), added}},
		{"it reorders, and nothing held is missing", controllerUser, memory, []corev1.Taint{taint(memory), first, second}, []corev1.Taint{second, taint(memory), first}, []corev1.Taint{second, taint(memory), first}},
		{"it removes one that is not held", controllerUser, disk, []corev1.Taint{taint(memory), taint(disk)}, nil, []corev1.Taint{taint(disk)}},
		{"held keys that were not there", controllerUser, memory + "," + disk, []corev1.Taint{first, taint(memory)}, nil, []corev1.Taint{taint(memory)}},
		{"no taint was there", controllerUser, memory, nil, []corev1.Taint{added}, []corev1.Taint{added}},
		// Each taint compared with each other would be too much for the API server's limit of cost.
		{"among 1,000 foreign taints", controllerUser, memory, slices.Insert(slices.Clone(many), 500, taint(memory)), many, slices.Insert(slices.Clone(many), 500, taint(memory))},
		{"1,000 foreign taints in another order", controllerUser, memory, append(slices.Clone(many), taint(memory)), reversed(many), append(slices.Clone(many), taint(memory))},
		// More than that limit: the taint is lost, the write is not.
		{"the policy fails", controllerUser, memory, append(slices.Clone(tooMany), taint(memory)), tooMany, tooMany},
	}
}

func foreignTaints(count int) []corev1.Taint {
	list := make([]corev1.Taint, count)
	for i := range list {
		list[i] = taint(fmt.Sprint("t", i))
	}
	return list
}

func reversed(taints []corev1.Taint) []corev1.Taint {
	taints = slices.Clone(taints)
	slices.Reverse(taints)
	return taints
}

// Everybody else may remove held taints.
func othersWrites() []keepWrite {
	var rows []keepWrite
	for _, user := range []string{
		"admin",
		"system:node:writes-of-keep",
		"system:kube-scheduler",
		"system:serviceaccount:kube-system:daemon-set-controller",
		"system:serviceaccount:kube-system:ttl-controller",
		"system:serviceaccount:default:node-controller",
		"system:serviceaccount:taintlet-system:taintlet",
	} {
		rows = append(rows, keepWrite{
			user + " removes a held taint", user, memory,
			[]corev1.Taint{taint("dedicated"), taint(memory)}, []corev1.Taint{taint("dedicated")}, []corev1.Taint{taint("dedicated")},
		})
	}
	return rows
}

// The controller may remove all but four pairs, whatever the annotation names.
// One of the four beside shows that the policy was there.
func foreignPairs() []keepWrite {
	var rows []keepWrite
	for _, key := range []string{
		"dedicated", notReady, unreachable, unschedulable, corev1.TaintNodeOutOfService,
		"node.cloudprovider.kubernetes.io/uninitialized",
		memory + "-x", "taintlet.dev/memory-pressure", "memory-pressure",
	} {
		rows = append(rows, keepWrite{
			"named: " + key, controllerUser, key + "," + key + ":NoSchedule," + disk,
			[]corev1.Taint{taint(key), taint(disk)}, nil, []corev1.Taint{taint(disk)},
		})
	}
	for _, key := range []string{memory, disk, pid, network} {
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute} {
			rows = append(rows, keepWrite{
				"named: " + key + " with " + string(effect), controllerUser, key + "," + key + ":" + string(effect),
				[]corev1.Taint{{Key: key, Effect: effect}, taint(key)}, nil, []corev1.Taint{taint(key)},
			})
		}
	}
	return rows
}

// What a strange annotation holds.
func annotations() []keepWrite {
	// All annotations of an object may have 256 KiB (ValidateAnnotationsSize in
	// k8s.io/apimachinery/pkg/api/validation).
	const room = 256<<10 - len(held)
	var rows []keepWrite
	for _, test := range []struct {
		name, held string
		want       []corev1.Taint
	}{
		{"none", without, nil},
		{"empty", "", nil},
		{"blanks and empty entries", ",, ,no key at all!, " + memory + "\t,", []corev1.Taint{taint(memory)}},
		{"one key three times", memory + "," + memory + "," + memory, []corev1.Taint{taint(memory)}},
		{"key with effect, capitals, quotes", memory + ":NoSchedule," + strings.ToUpper(memory) + `,"` + memory + `"`, nil},
		{"16th entry", strings.Repeat("x,", 15) + memory, []corev1.Taint{taint(memory)}},
		{"17th entry", strings.Repeat("x,", 16) + memory, nil},
		{"256 KiB of entries", memory + strings.Repeat(",", room-len(memory)), []corev1.Taint{taint(memory)}},
		{"256 KiB in one entry", disk + "," + strings.Repeat("x", room-len(disk)-1), []corev1.Taint{taint(disk)}},
	} {
		rows = append(rows, keepWrite{
			"annotation: " + test.name, controllerUser, test.held,
			[]corev1.Taint{taint(memory), taint(disk)}, nil, test.want,
		})
	}
	return rows
}

// What the annotation was before the write counts.
func annotationInTheWrite(t *testing.T, c *Cluster, name string) {
	for _, test := range []struct {
		name, user, before, write string
		want                      []corev1.Taint
	}{
		{"the controller sets it", controllerUser, without, memory, nil},
		{"the controller removes it", controllerUser, memory, without, []corev1.Taint{taint(memory)}},
		{"the controller names another", controllerUser, memory, disk, []corev1.Taint{taint(memory)}},
		{"taintlet removes it", "system:serviceaccount:taintlet-system:taintlet", memory, without, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.PatchNode(t, name, heldAndTaints(test.before, taint(memory)))
			if got := write(t, c, test.user, name, heldAndTaints(test.write)).Spec.Taints; !sameTaints(got, test.want) {
				t.Errorf("taints %v, want %v", got, test.want)
			}
		})
	}
}

// A finalizer lets a Node live on, and the scheduler does not mind the
// deletion: the taint is needed as before.
func deletedNode(t *testing.T, c *Cluster) {
	const name = "deleted-under-keep"
	createNode(t, c, name, "example.com/wait")
	c.PatchNode(t, name, heldAndTaints(memory, taint(memory)))
	if err := c.Client().CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := write(t, c, controllerUser, name, heldAndTaints(memory))
	if got.DeletionTimestamp == nil || !sameTaints(got.Spec.Taints, []corev1.Taint{taint(memory)}) {
		t.Errorf("deleted at %v, taints %v; want the held taint on a deleted Node", got.DeletionTimestamp, got.Spec.Taints)
	}
}

// The policy has no say in, and costs nothing for, anything but updates of
// nodes: its conditions are not even evaluated. When they are and say no, as
// they do to an administrator, the API server counts it. (It refuses a mutating
// policy for deletions.)
func otherOperations(t *testing.T, c *Cluster, name string) {
	const saidNo = "apiserver_admission_match_condition_evaluation_seconds_count{"
	nodes := c.Client().CoreV1().Nodes()
	dry := []string{metav1.DryRunAll}
	status := []byte(`{"status":{"conditions":[{"type":"MemoryPressure","status":"False"}]}}`)
	for _, test := range []struct {
		name        string
		write       func() error
		evaluations int
	}{
		{"create", func() error {
			_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{DryRun: dry})
			return err
		}, 0},
		{"nodes/status", func() error {
			_, err := nodes.Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{DryRun: dry}, "status")
			return err
		}, 0},
		{"update", func() error {
			_, err := nodes.Patch(t.Context(), name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := counted(t, c, saidNo)
			if err := test.write(); err != nil {
				t.Fatal(err)
			}
			if got := counted(t, c, saidNo) - before; got != test.evaluations {
				t.Errorf("the policy's conditions were evaluated %d times, want %d", got, test.evaluations)
			}
		})
	}
}

// counted returns the sum of the policy's series of the API server that begin
// so.
func counted(t *testing.T, c *Cluster, series string) int {
	t.Helper()
	metrics, err := c.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, series) || !strings.Contains(line, `="taintlet-keep"`) {
			continue
		}
		count, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1 : len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		sum += count
	}
	return sum
}

// createNode makes a Node that lasts as long as the test's cluster.
func createNode(t *testing.T, c *Cluster, name string, finalizers ...string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
	if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// write returns the Node after the user has made the change.
func write(t *testing.T, c *Cluster, user, name string, change map[string]any) *corev1.Node {
	t.Helper()
	return patchAs(t, c, user, name, change, metav1.PatchOptions{})
}

func patchAs(t *testing.T, c *Cluster, user, name string, change map[string]any, options metav1.PatchOptions) *corev1.Node {
	t.Helper()
	client, err := c.as(user)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, patch, options)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// show10 keeps a failure readable.
func show10(taints []corev1.Taint) string {
	if len(taints) > 10 {
		return fmt.Sprintf("%v and %d more", taints[:10], len(taints)-10)
	}
	return fmt.Sprint(taints)
}
