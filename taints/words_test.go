package taints

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The words of Kubernetes are spelled here as they are there.
func TestWordsOfKubernetes(t *testing.T) {
	conditions := map[string]string{
		corev1.TaintNodeMemoryPressure:     string(corev1.NodeMemoryPressure),
		corev1.TaintNodeDiskPressure:       string(corev1.NodeDiskPressure),
		corev1.TaintNodePIDPressure:        string(corev1.NodePIDPressure),
		corev1.TaintNodeNetworkUnavailable: string(corev1.NodeNetworkUnavailable),
	}
	if !maps.Equal(conditions, lifecycleConditions()) {
		t.Errorf("lifecycleConditions: %v", lifecycleConditions())
	}
	for _, key := range []string{
		corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeOutOfService,
	} {
		if Reserved(key) == "" {
			t.Errorf("%s may be written", key)
		}
	}
	for ours, theirs := range map[string]string{
		string(NoSchedule): string(corev1.TaintEffectNoSchedule), string(PreferNoSchedule): string(corev1.TaintEffectPreferNoSchedule),
		string(NoExecute): string(corev1.TaintEffectNoExecute), string(ConditionTrue): string(corev1.ConditionTrue),
		string(ConditionFalse): string(corev1.ConditionFalse), string(ConditionUnknown): string(corev1.ConditionUnknown),
	} {
		if ours != theirs {
			t.Errorf("%s is %s in Kubernetes", ours, theirs)
		}
	}
	for _, taint := range []Taint{{Key: "a", Value: "1", Effect: NoSchedule}, {Key: "a", Effect: NoExecute}} {
		theirs := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}
		if taint.String() != theirs.ToString() {
			t.Errorf("%s is shown as %s", taint, theirs.ToString())
		}
	}
}
