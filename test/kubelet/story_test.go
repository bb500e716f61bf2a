package kubelet_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
)

// patience is how long a version of the Node is waited for: far above what a
// busy machine needs.
const patience = 2 * time.Minute

const foreignPrefix = "example.com/"

// story is the Node from a moment on, version by version. None is left out: a
// watch tells of each, and versions that nobody has waited for are checked
// as well.
type story struct {
	t        *testing.T
	cluster  *cluster.Cluster
	versions <-chan *corev1.Node
	last     *corev1.Node
	foreign  []taints.Taint // of the first version: they stay as they are
	stays    bool           // from here on every version has the pair
}

// follow begins when nobody wants the pair.
func follow(t *testing.T, c *cluster.Cluster) *story {
	t.Helper()
	first, err := c.WaitNode(t.Context(), nodeName, func(node *corev1.Node) bool {
		return !tainted(node) && !held(node) && diskPressure(corev1.ConditionFalse)(node)
	})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := c.Client().CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + nodeName, ResourceVersion: first.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	versions := make(chan *corev1.Node, 1000)
	go func() { // ends with the test's context
		defer close(versions)
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			if !ok || event.Type != watch.Modified {
				return
			}
			versions <- node
		}
	}()
	return &story{t: t, cluster: c, versions: versions, last: first, foreign: foreignOf(first)}
}

// until reads on to a version of which the condition holds.
func (s *story) until(what string, holds func(*corev1.Node) bool) {
	s.t.Helper()
	began, count := time.Now(), 0
	deadline := time.After(patience)
	for !holds(s.last) {
		select {
		case version, open := <-s.versions:
			if !open {
				s.t.Fatalf("the watch ended before it was so that %s; last seen: %s", what, brief(s.last))
			}
			s.read(version)
			count++
		case <-deadline:
			s.t.Fatalf("it is not so that %s; last seen: %s", what, brief(s.last))
		}
	}
	s.t.Logf("%s after %s and %d versions", what, time.Since(began).Round(time.Millisecond), count)
}

// read checks the next version.
func (s *story) read(version *corev1.Node) {
	s.t.Helper()
	switch {
	case tainted(version):
	case s.stays:
		s.t.Fatalf("the pair is not on %s", brief(version))
	case held(version):
		s.t.Fatalf("the pair is held, and not on %s", brief(version))
	case tainted(s.last) && diskPressure(corev1.ConditionTrue)(version):
		s.t.Fatalf("the kubelet is under pressure, and the pair is gone from %s", brief(version))
	}
	if foreign := foreignOf(version); !taints.Equal(foreign, s.foreign) {
		s.t.Fatalf("foreign taints were %v, and are not on %s", s.foreign, brief(version))
	}
	s.last = version
}

// untilControllerWorked reads on until the lifecycle controller has worked on
// the Node as it is now. It removes all taints that are out of place in one
// write: one that nobody holds, unschedulable on a Node that is schedulable,
// goes in the same.
func (s *story) untilControllerWorked() {
	s.t.Helper()
	patch := `[{"op": "add", "path": "/spec/taints/-", "value": {"key": "` + corev1.TaintNodeUnschedulable + `", "effect": "NoSchedule"}}]`
	_, err := s.cluster.Client().CoreV1().Nodes().Patch(s.t.Context(), nodeName, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	outOfPlace := cluster.HasTaint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	s.until("a taint is out of place", outOfPlace)
	s.until("the controller has worked on the Node", cluster.Not(outOfPlace))
}

// setForeignTaints gives the Node taints that are nobody's here. Pods come all the
// same.
func setForeignTaints(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	then := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	c.SetTaints(t, nodeName,
		corev1.Taint{Key: foreignPrefix + "first", Value: "one", Effect: corev1.TaintEffectPreferNoSchedule, TimeAdded: &then},
		corev1.Taint{Key: foreignPrefix + "second", Effect: corev1.TaintEffectPreferNoSchedule})
}

func foreignOf(node *corev1.Node) []taints.Taint {
	return slices.DeleteFunc(apiserver.NodeOf(node).Taints, func(taint taints.Taint) bool {
		return !strings.HasPrefix(taint.Key, foreignPrefix)
	})
}

func tainted(node *corev1.Node) bool {
	return cluster.HasTaint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)(node)
}

// held says whether taintlet wants the pair.
func held(node *corev1.Node) bool {
	return node.Annotations[taints.HeldAnnotation] == corev1.TaintNodeDiskPressure
}

// diskPressure asks for the kubelet's condition.
func diskPressure(status corev1.ConditionStatus) func(*corev1.Node) bool {
	return cluster.HasCondition(corev1.NodeDiskPressure, status)
}

// brief is what this test checks.
func brief(node *corev1.Node) string {
	text, err := json.Marshal(map[string]any{
		"version": node.ResourceVersion, "annotations": node.Annotations, "taints": node.Spec.Taints, "conditions": node.Status.Conditions,
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}
