package faults

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// webhookAnnotation says what the webhook does with the agents' writes of a Node.
const webhookAnnotation = "example.com/webhook"

// What it does.
const (
	hookStrips   = "strips a taint"
	hookDelays   = "delays"
	hookIsLate   = "delays for too long"
	hookRefuses  = "refuses"
	hookBreaksUp = "breaks off"
)

// webhookConfiguration has the API server ask a webhook about the agents' writes to a Node
// with the annotation. Somebody's platform may have such a one.
const webhookConfiguration = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: webhook}
webhooks:
- name: webhook.example.com
  clientConfig: {url: %q, caBundle: %s}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes, nodes/status], scope: Cluster}
  matchConditions:
  - {name: agents, expression: 'request.userInfo.username.startsWith("system:serviceaccount:berth-")'}
  - {name: annotated, expression: 'has(oldObject.metadata.annotations) && "example.com/webhook" in oldObject.metadata.annotations'}
  failurePolicy: Fail
  timeoutSeconds: 1
  sideEffects: None
  admissionReviewVersions: [v1]
`

// webhook is a server that the API server asks.
type webhook struct {
	server *httptest.Server
	seen   func(name, kind string) // each request that it treats otherwise than others

	mu     sync.Mutex
	judges map[string]*judge // by the name of their Node
}

// install starts the webhook and has the API server ask it.
func (h *webhook) install(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	certificate, err := authorities().ca.issue(inLongTime())
	if err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewUnstartedServer(h)
	h.server.Config.ErrorLog = silent()
	h.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
	h.server.StartTLS()
	bed.Apply(ctx, t, c, fmt.Sprintf(webhookConfiguration, h.server.URL, base64.StdEncoding.EncodeToString(authorities().ca.pem())))
}

// close ends the server, if there is one.
func (h *webhook) close() {
	if h.server != nil {
		h.server.Close()
	}
}

// ServeHTTP answers a review as the annotation of the Node says.
func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var before, after corev1.Node
	for _, err := range []error{json.NewDecoder(r.Body).Decode(&review), json.Unmarshal(review.Request.OldObject.Raw, &before), json.Unmarshal(review.Request.Object.Raw, &after)} {
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	what := before.Annotations[webhookAnnotation]
	kind := "patch nodes"
	if review.Request.SubResource != "" {
		kind += "/" + review.Request.SubResource
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	switch what {
	case hookDelays:
		time.Sleep(500 * time.Millisecond) // the fault itself
	case hookIsLate:
		time.Sleep(1500 * time.Millisecond)
	case hookRefuses:
		answer.Allowed, answer.Result = false, &metav1.Status{Code: http.StatusForbidden, Message: "a fault of the test"}
	case hookBreaksUp:
		h.seen(webhookName(what), kind)
		panic(http.ErrAbortHandler)
	case hookStrips:
		if !h.strip(&before, &after, answer) {
			kind = "" // nothing befell it
		}
	}
	if kind != "" {
		h.seen(webhookName(what), kind)
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	write(w, review)
}

func webhookName(what string) string { return "a webhook " + what }

// strip takes those taints out of a write that it would set, if others may take them.
func (h *webhook) strip(before, after *corev1.Node, answer *admissionv1.AdmissionResponse) bool {
	h.mu.Lock()
	j := h.judges[before.Name]
	h.mu.Unlock()
	if j == nil {
		return false
	}
	had := taintsOf(before)
	var stripped []taints.Pair
	left := slices.DeleteFunc(slices.Clone(after.Spec.Taints), func(taint corev1.Taint) bool {
		pair := taints.Taint{Key: taint.Key, Effect: taints.Effect(taint.Effect)}.Pair()
		if slices.Contains(had, pair) || !isStripped(pair) {
			return false
		}
		stripped = append(stripped, pair)
		return true
	})
	if len(stripped) == 0 {
		return false
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/taints", "value": left}})
	if err != nil {
		j.complain(err.Error())
		return false
	}
	kind := admissionv1.PatchTypeJSONPatch
	answer.Patch, answer.PatchType = patch, &kind
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, pair := range stripped {
		j.lose(pair)
	}
	return true
}

// isStripped reports whether the webhook takes such a pair: of its two losses within a minute
// there is no other pair to which the agent would give way.
func isStripped(pair taints.Pair) bool {
	return strings.HasPrefix(pair.Key, taints.DefaultStandInPrefix+"/") || evicts(pair)
}

// interpose has the webhook do that with the agents' writes.
func (s *scene) interpose(what string) (end func()) {
	hooks.mu.Lock()
	hooks.judges[s.name] = s.judge
	hooks.mu.Unlock()
	s.person("has a webhook that "+what, func(node *corev1.Node) { node.Annotations[webhookAnnotation] = what })
	return func() {
		s.person("removes the webhook", func(node *corev1.Node) { delete(node.Annotations, webhookAnnotation) })
	}
}
