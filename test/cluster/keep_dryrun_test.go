package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectl taintlet check asks in a dry run whether the policy keeps a taint: the write
// names it, whatever the stored Node is.
func TestKeepAnswersADryRun(t *testing.T) {
	SkipWithoutMutatingAdmissionPolicy(t)
	c := alone.Require(t)
	c.Keep(t)
	const name = "dry-runs-of-keep"
	createNode(t, c, name)
	stamp := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	foreign := corev1.Taint{Key: "example.com/foreign", Value: "value", Effect: corev1.TaintEffectNoExecute, TimeAdded: &stamp}
	kept := corev1.Taint{Key: memory, Value: "by-taintlet", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &stamp}
	prefer := corev1.Taint{Key: memory, Effect: corev1.TaintEffectPreferNoSchedule}
	all := []corev1.Taint{taint(memory), taint(disk), taint(pid), taint(network)}
	// Each taint compared with each other would be too much for the API server's limit of cost.
	many, before := foreignTaints(1000), failures(t, c)
	for _, test := range []struct {
		name, user, stored string
		before             []corev1.Taint
		held               string
		want               []corev1.Taint
	}{
		{"an empty Node", controllerUser, without, nil, memory, []corev1.Taint{taint(memory)}},
		{"under its other name", controllerUserKM, without, nil, memory, []corev1.Taint{taint(memory)}},
		{"the four, twice and with others", controllerUser, without, nil, strings.Repeat(network+", x,"+pid+","+disk+" ,"+memory+",", 2), all},
		{"foreign taints stay", controllerUser, without, []corev1.Taint{foreign, prefer}, memory, []corev1.Taint{foreign, prefer, taint(memory)}},
		{"a kept taint is there", controllerUser, memory, []corev1.Taint{kept, foreign}, memory + "," + disk, []corev1.Taint{kept, foreign, taint(disk)}},
		{"among 1,000 foreign taints", controllerUser, without, many, memory, append(slices.Clone(many), taint(memory))},
		{"foreign keys", controllerUser, without, nil, "dedicated," + notReady + "," + memory + "-x", nil},
		{"no annotation", controllerUser, memory, nil, without, nil},
		{"17th entry", controllerUser, without, nil, strings.Repeat("x,", 16) + memory, nil},
		{"256 KiB of entries", controllerUser, without, nil, memory + strings.Repeat(",", 256<<10-len(held)-len(memory)), []corev1.Taint{taint(memory)}},
		{"an administrator", "admin", without, nil, memory, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			stored := c.PatchNode(t, name, heldAndTaints(test.stored, test.before...))
			change := map[string]any{"metadata": heldAndTaints(test.held)["metadata"]}
			got := patchAs(t, c, test.user, name, change, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if !sameTaints(got.Spec.Taints, test.want) {
				t.Errorf("taints %s, want %s", show10(got.Spec.Taints), show10(test.want))
			}
			if now := c.GetNode(t, name); now.ResourceVersion != stored.ResourceVersion {
				t.Errorf("the stored Node changed: %v", now)
			}
		})
	}
	if got := failures(t, c); got != before {
		t.Errorf("the policy's conditions and mutation failed %v times, and %v before", got, before)
	}
}

// A policy that keeps nothing, whatever the reason, does not pass for one that does.
func TestKeepThatIsBrokenFailsTheDryRun(t *testing.T) {
	SkipWithoutMutatingAdmissionPolicy(t)
	c := alone.Require(t)
	whole, err := os.ReadFile("../../deploy/keep.yaml")
	if err != nil {
		t.Fatal(err)
	}
	maps := string(whole)[strings.Index(string(whole), ".map(taint,\n"):strings.Index(string(whole), "})}]")]
	breaks := map[string][2]string{
		"a typo in a variable":          {"variables.before.filter(taint,", "variables.before.filter(taint, taint.keys != '' &&"},
		"a typo in the stored taints":   {"has(oldObject.spec.taints) ? oldObject.spec.taints : []", "oldObject.spec.taint"},
		"a typo in the other taints":    {"?'timeAdded': taint.?timeAdded", "'timeAdded': taint.timeadded"},
		"a typo in a condition":         {"request.dryRun || has(oldObject.spec.taints)", "size(oldObject.spec.taint) > 0"},
		"the controller by other names": {"node-controller'", "node-lifecycle-controller'"},
		"the binding names no policy":   {"policyName: taintlet-keep", "policyName: taintlet-kept"},
		"another operation":             {"operations: [UPDATE]", "operations: [CREATE]"},
		"nothing held is removed":       {"size(variables.removed) == 0 ? []", "true ? []"},
	}
	if atLeast(chosenVersion(t), "1.37") {
		breaks["taints that are no maps"] = [2]string{maps + "})", ""}
	}
	for name, change := range breaks {
		t.Run(name, func(t *testing.T) {
			c.Keep(t)
			broken := strings.ReplaceAll(string(whole), change[0], change[1])
			if broken == string(whole) {
				t.Fatalf("keep.yaml has no %q", change[0])
			}
			path := filepath.Join(t.TempDir(), "keep.yaml")
			if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			if err := c.WaitKeep(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		})
	}
}
