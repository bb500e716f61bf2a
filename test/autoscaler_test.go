package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
)

// toAutoscaler is what a taint makes of a Node that is Ready, to cluster-autoscaler.
type toAutoscaler string

const (
	unready    toAutoscaler = "unready"     // counts for the limit that stops all scaling
	notStarted toAutoscaler = "not started" // as unready, after --max-node-startup-time
	ignored    toAutoscaler = "ignored"     // ready, and new Nodes of the group do not have it
	expected   toAutoscaler = "expected"    // ready, and new Nodes of the group have it as well
)

// readByAutoscaler is the rule of cluster-autoscaler, release 1.36.1, with its default flags:
//   - GetNodeReadiness in cluster-autoscaler/utils/kubernetes/ready.go (notReadyTaints)
//   - FilterOutNodesWithStartupTaints, SanitizeTaints and NodeConditionTaints in
//     cluster-autoscaler/utils/taints/taints.go
func readByAutoscaler(key string) toAutoscaler {
	switch key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeDiskPressure, corev1.TaintNodeNetworkUnavailable:
		return unready
	case corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable:
		return ignored
	}
	switch prefix, _, _ := strings.Cut(key, "/"); prefix {
	case "startup-taint.cluster-autoscaler.kubernetes.io", "ignore-taint.cluster-autoscaler.kubernetes.io":
		return notStarted
	case "status-taint.cluster-autoscaler.kubernetes.io":
		return ignored
	}
	return expected
}

// The defaults cost what docs/neighbours.md says of cluster-autoscaler. With own
// keys that have its prefix it ignores every taint of the built-in rules, with keep.yaml and without.
func TestTaintsToClusterAutoscaler(t *testing.T) {
	for _, test := range []struct {
		setting string
		keep    bool
		want    []string
	}{
		{"", true, []string{"DiskPressure unready", "MemoryPressure ignored", "NetworkUnavailable unready", "PIDPressure ignored"}},
		{"", false, []string{"DiskPressure expected", "MemoryPressure expected", "NetworkUnavailable expected", "PIDPressure expected"}},
		{"keys: Own\nkeyPrefix: " + taints.AutoscalerPrefix, true, []string{"DiskPressure ignored", "MemoryPressure ignored", "NetworkUnavailable ignored", "PIDPressure ignored"}},
		{"keys: Own\nkeyPrefix: " + taints.AutoscalerPrefix, false, []string{"DiskPressure ignored", "MemoryPressure ignored", "NetworkUnavailable ignored", "PIDPressure ignored"}},
	} {
		cfg, err := config.HostSchema().Decode(fmt.Appendf(nil, "apiVersion: %s\nkind: %s\n%s\n", config.APIVersion, config.Kind, test.setting))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rule := range cfg.Rules {
			_, pair := taints.Resolve(rule.Taint.Pair(), taints.Facts{KeepPolicy: test.keep, StandInPrefix: cfg.KeyPrefix})
			got = append(got, fmt.Sprintf("%s %s", rule.Condition, readByAutoscaler(pair.Key)))
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q, keep.yaml %t:\n%v\nwant\n%v", test.setting, test.keep, got, test.want)
		}
	}
}

// A Node with the start-up taint of docs/configuration.md has not started to cluster-autoscaler.
// What the product takes for unready is what the rule takes for unready.
func TestAutoscalerKeys(t *testing.T) {
	startup := regexp.MustCompile(`(?m)^ +taint: (\S+)$`).FindStringSubmatch(readText(t, "../docs/configuration.md"))
	if startup == nil || readByAutoscaler(startup[1]) != notStarted {
		t.Errorf("%q is no start-up taint to cluster-autoscaler", startup)
	}
	for _, rule := range config.Default().Rules {
		if key := rule.Taint.Key; taints.IsUnreadyToAutoscaler(key) != (readByAutoscaler(key) == unready) {
			t.Errorf("%s: unready is %t to the product", key, taints.IsUnreadyToAutoscaler(key))
		}
	}
}
