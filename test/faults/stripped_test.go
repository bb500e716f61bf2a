package faults

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/taints"
)

// The webhook takes the taints out of a write that the write would set, and no others. The
// judge hears of it.
func TestWebhookStripsATaint(t *testing.T) {
	j := &judge{lost: map[taints.Pair]int{}}
	h := webhook{judges: map[string]*judge{"node": j}, seen: func(string, string) {}}
	noSchedule := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	before := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Annotations: map[string]string{webhookAnnotation: hookStrips}}}
	before.Spec.Taints = []corev1.Taint{noSchedule("dedicated"), noSchedule("taintlet.dev/disk-pressure")}
	after := before.DeepCopy()
	after.Spec.Taints = append(after.Spec.Taints, noSchedule("taintlet.dev/memory-pressure"), noSchedule("example.com/pids"))
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1"}}
	var err error
	for into, node := range map[*runtime.RawExtension]*corev1.Node{&review.Request.OldObject: &before, &review.Request.Object: after} {
		if into.Raw, err = json.Marshal(node); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(text)))
	var said admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil || said.Response == nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	patch := string(said.Response.Patch)
	for key, isLeft := range map[string]bool{"dedicated": true, "taintlet.dev/disk-pressure": true, "example.com/pids": true, "taintlet.dev/memory-pressure": false} {
		if strings.Contains(patch, key) != isLeft {
			t.Errorf("the webhook leaves %s, and %s should be left: %t", patch, key, isLeft)
		}
	}
	pair := taints.Taint{Key: "taintlet.dev/memory-pressure", Effect: taints.NoSchedule}.Pair()
	if !said.Response.Allowed || j.lost[pair] != 1 || len(j.given) != 0 {
		t.Errorf("allowed %t, lost %v, given up %v", said.Response.Allowed, j.lost, j.given)
	}
}
