package cluster

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// shared has all components. alone is an API server that no controller writes to.
var (
	shared Shared
	alone  = Shared{Options: Options{WithoutControllerManager: true, WithoutScheduler: true}}
)

func TestMain(m *testing.M) {
	code := shared.Run(m)
	if err := alone.Stop(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
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
