package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// hostile texts move the cursor, colour, ring, write backwards, hide and pile up.
var hostile = []string{
	"\x1b[2J\x1b[31mred\x07", "a\rb\nc\td\ve\ff\x00g", "\u009b31m\u0085\u2028\u2029", "\u202egnp.exe\u200b\u2066",
	"e" + strings.Repeat("\u0301", 50), "\xff\xfe broken", strings.Repeat("long ", 100000), "\x7f\u00ad\ufeff\U000e0001",
}

// hostileNode has a hostile text wherever a Node may have one.
func hostileNode(text string) *taints.Node {
	now := metav1.Now()
	pair, err := json.Marshal(text + ":NoSchedule")
	if err != nil {
		panic(err)
	}
	word, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return apiserver.NodeOf(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "hostile" + text,
			Annotations: map[string]string{
				taints.PausedAnnotation: text, taints.HeldAnnotation: text,
				taints.RecordAnnotation: `{"version": 1, "revision": 1, "time": "2026-11-22T03:00:00Z", "owned": [` + string(pair) + `],
					"conditions": {"MemoryPressure": {"level": "Degraded", "penalty": 1e300, "flaps": 999999999, "since": "9999-12-31T23:59:59Z", "clearsAt": "9999-12-31T23:59:59Z", "heldBy": ` + string(word) + `, "dispute": {"Degraded": {"stage": 2, "until": 9223372036854775807}}}}}`,
			},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: text, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)},
				{Manager: "taintlet", Time: &now},
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: text, Value: text, Effect: "NoSchedule"}, {Key: "taintlet.dev/" + text, Value: text, Effect: corev1.TaintEffect(text)},
		}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionStatus(text)},
			{Type: "HostMemoryPressure", Status: corev1.ConditionTrue, Reason: text, Message: text},
			{Type: "HostDiskPressure", Status: corev1.ConditionStatus(text), Reason: text, Message: text},
			{Type: "HostPIDPressure", Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Now().Add(1 << 62))},
		}},
	})
}

// What somebody else wrote on a Node neither commands a terminal, nor makes a row of
// its own, nor is longer than what is worth reading.
func TestHostileNodes(t *testing.T) {
	for _, output := range []string{OutputTable, OutputWide, "json", "yaml"} {
		for _, text := range hostile {
			fleet := NewFleet(Options{})
			node := hostileNode(text)
			fleet.Add(node)
			var out strings.Builder
			if err := (Options{Out: &out, Output: output}).print(fleet.Report(time.Now())); err != nil {
				t.Fatal(err)
			}
			for _, r := range out.String() {
				if r != '\n' && (!unicode.IsPrint(r) || unicode.IsMark(r)) {
					t.Fatalf("%s of %.20q has %q", output, text, r)
				}
			}
			if out.Len() > 32<<10 {
				t.Errorf("%s of %.20q has %d bytes", output, text, out.Len())
			}
			if lines := strings.Count(out.String(), "\n"); output == OutputTable && lines > 9 {
				t.Errorf("%.20q makes %d lines:\n%.2000s", text, lines, out.String())
			}
		}
	}
}

// A Node with as many taints as the API server takes makes few rows.
func TestThousandsOfTaints(t *testing.T) {
	node := hostileNode("x")
	for range 5000 {
		node.Taints = append(node.Taints, taints.Taint{Key: "taintlet.dev/" + strings.Repeat("x", 60), Effect: "NoSchedule"})
	}
	n := read(node, config.Default().Policy())
	if count := len(n.Others) + len(n.Conditions[0].Taints); count > maxTaints {
		t.Errorf("%d taints are shown", count)
	}
}

// A record that cannot be read is said to be so, and hides no taint.
func TestUnreadableRecord(t *testing.T) {
	for _, text := range []string{"{", `{"version": 2}`, strings.Repeat("x", 20<<10), "[]"} {
		node := hostileNode("x")
		node.Annotations[taints.RecordAnnotation] = text
		n := read(node, config.Default().Policy())
		if !strings.Contains(n.Problem, "cannot be read") || n.State != Tainted {
			t.Errorf("%.20q: %q %s", text, n.Problem, n.State)
		}
	}
}
