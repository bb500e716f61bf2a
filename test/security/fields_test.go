package security

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// otherFields holds, for every field of a Node that is not taintlet's, another
// value than the one that the Node of the test has, by the path to the struct.
// Fields that the API server lets nobody change that way are empty.
func otherFields() map[string]map[string]string {
	return map[string]map[string]string{
		"metadata": {
			"name": "", "generateName": "", "namespace": "", "selfLink": "", "uid": "", "creationTimestamp": "",
			"deletionTimestamp": "", "deletionGracePeriodSeconds": "",
			// Written by the API server itself; a patch may not say what it likes.
			"resourceVersion": "", "generation": "", "managedFields": "",
			"annotations":     `{"example.com/more": "b"}`,
			"labels":          `{"pool": "b"}`,
			"ownerReferences": `[{"apiVersion": "v1", "kind": "ConfigMap", "name": "another", "uid": "2"}]`,
			"finalizers":      `["example.com/mine"]`,
		},
		"spec": {
			"podCIDR":       `"10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]`,
			"podCIDRs":      `["10.0.0.0/24"], "podCIDR": "10.0.0.0/24"`,
			"providerID":    `"cloud://another"`,
			"unschedulable": `true`,
			"taints":        `[{"key": "another", "effect": "NoSchedule"}]`,
			"configSource":  "", // dropped since dynamic kubelet configuration is gone
			"externalID":    "", // deprecated; may not be updated

			"podPreemptionPolicy": "", // alpha in 1.37: forbidden while InPlacePodVerticalScalingSchedulerPreemption is off
		},
		"status": {
			"capacity":         `{"cpu": "1k"}`,
			"allocatable":      `{"cpu": "1k"}`,
			"phase":            `"Terminated"`,
			"conditions":       `[{"type": "Another", "status": "True"}]`,
			"addresses":        `[{"type": "InternalIP", "address": "10.0.0.1"}]`,
			"daemonEndpoints":  `{"kubeletEndpoint": {"Port": 1}}`,
			"nodeInfo":         `{"kernelVersion": "another"}`,
			"images":           `[{"names": ["another"], "sizeBytes": 1}]`,
			"volumesInUse":     `["kubernetes.io/another"]`,
			"volumesAttached":  `[{"name": "kubernetes.io/another", "devicePath": "/dev/another"}]`,
			"config":           "", // dropped, as configSource
			"runtimeHandlers":  `[{"name": "another"}]`,
			"features":         `{"supplementalGroupsPolicy": true}`,
			"declaredFeatures": `["Another"]`,
		},
	}
}

// No field of a Node is the agent's to change, whatever its name. A field that
// a new Kubernetes adds makes this test fail until it has a value here.
func TestEveryFieldIsCovered(t *testing.T) {
	for path, of := range map[string]reflect.Type{
		"metadata": reflect.TypeFor[metav1.ObjectMeta](), "spec": reflect.TypeFor[corev1.NodeSpec](), "status": reflect.TypeFor[corev1.NodeStatus](),
	} {
		var names []string
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
		slices.Sort(names)
		if covered := slices.Sorted(maps.Keys(otherFields()[path])); !slices.Equal(covered, names) {
			t.Errorf("fields of %s\n     are %v\ncovered %v", path, names, covered)
		}
	}
}

func TestNoOtherFieldChanges(t *testing.T) {
	c := denying.Require(t)
	const name = "fields"
	c.Register(t, name)
	agent := bed.Client(t, bed.AgentOf(t, c, name))
	for path, fields := range otherFields() {
		for field, value := range fields {
			if value == "" {
				continue
			}
			patch := `{"` + path + `": {"` + field + `": ` + value + `}}`
			subresources := map[string][]string{"metadata": {"", "status"}, "spec": {""}, "status": {"status"}}[path]
			for _, subresource := range subresources {
				what := "nodes/" + subresource + " " + path + "." + field
				before := c.GetNode(t, name)
				dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
				changed, err := c.Client().CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), dryRun, subresource)
				if err != nil {
					t.Errorf("%s: the administrator cannot change it either: %v", what, err)
					continue
				}
				changed.ManagedFields, before.ManagedFields = nil, nil
				changed.ResourceVersion = before.ResourceVersion
				if reflect.DeepEqual(before, changed) {
					if cluster.HasMutatingAdmissionPolicy(t) { // an older API server drops fields that it does not know
						t.Errorf("%s: the patch changes nothing", what)
					}
					continue
				}
				if err := bed.PatchNode(t.Context(), agent, name, types.MergePatchType, patch, subresource); !bed.DeniedBy(err, "taintlet-nodes") {
					t.Errorf("%s: not denied: %v", what, err)
				}
			}
		}
	}
}
