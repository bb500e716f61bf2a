package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/taints"
)

// forged is what a line begins with that others would forge.
const forged = "FORGED"

// hostile moves the cursor, colours, rings, writes backwards, hides, begins a line of
// its own, and is long.
func hostile() string {
	return "\x1b[2J\x1b[31mred\x07\u009b31m\u202egnp\u200b\u0301\u2028\x7f\n" + forged + " a\rb\tc" + strings.Repeat("x", 20_000)
}

// hostileServer answers every request with objects that have a hostile text wherever
// the API server or a rogue one lets text be, or else with an error that is one.
func hostileServer(t *testing.T, fails bool) string {
	t.Helper()
	text := hostile()
	meta := metav1.ObjectMeta{
		Name: text, Namespace: text, UID: "1", ResourceVersion: "1", Labels: map[string]string{text: text},
		OwnerReferences: []metav1.OwnerReference{{Kind: text, Name: text}},
		Annotations:     map[string]string{taints.PausedAnnotation: text, taints.HeldAnnotation: text, taints.RecordAnnotation: text, text: text},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: text}},
	}
	node := corev1.Node{
		ObjectMeta: meta,
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: text, Value: text, Effect: corev1.TaintEffect(text)}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeConditionType(text), Status: corev1.ConditionStatus(text), Reason: text, Message: text},
			{Type: "HostMemoryPressure", Status: corev1.ConditionTrue, Reason: text, Message: text},
		}},
	}
	pod := corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: text}, Status: corev1.PodStatus{Phase: corev1.PodPhase(text)}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != userAgent() {
			t.Errorf("%s %s by %q, want %q", r.Method, r.URL.Path, r.UserAgent(), userAgent())
		}
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch path := r.URL.Path; {
		case fails:
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: text, Reason: metav1.StatusReason(text)}
		case strings.HasSuffix(path, "/nodes"):
			answer = corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Node{node}}
		case strings.Contains(path, "/nodes/"):
			node := node
			node.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
			answer = node
		case strings.HasSuffix(path, "/pods"):
			answer = corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{pod}}
		default: // an object of any kind, and a list of such objects
			answer = map[string]any{
				"kind": text, "apiVersion": text, "metadata": meta, "items": []any{map[string]any{"metadata": meta, "spec": map[string]any{"holderIdentity": text}}},
				"gitVersion": text, "groups": []any{map[string]any{"name": text}}, "status": map[string]any{"allowed": true, "reason": text},
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// What others wrote into objects and errors neither commands the terminal of whoever
// runs a verb, nor makes a line of its own, nor fills the screen.
func TestHostileObjectsInEveryVerb(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	calls := map[string][]string{
		"status":     {"status", "status -o=wide", "status -o=json", "status -o=yaml", "status node-1"},
		"check":      {"check", "check --pre", "check -o=json"},
		"config":     {"config --evictions", "config --evictions node-1"},
		"cleanup":    {"cleanup all --dry-run", "cleanup stale --dry-run", "cleanup node node-1 --dry-run", "cleanup node node-1"},
		"":           nil, // the agent logs
		"once":       nil, // asks nobody
		"watch":      nil, // asks nobody
		"completion": nil, // is about this program
		"version":    nil,
		"help":       nil,
	}
	for _, v := range verbs() {
		lines, known := calls[v.name]
		if !known {
			t.Errorf("verb %q: no call of it is tried", v.name)
		}
		for _, fails := range []bool{false, true} {
			for _, line := range lines {
				kubeconfig := hostileServer(t, fails)
				var stdout, stderr bytes.Buffer
				run(append([]string{"taintlet"}, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...), &stdout, &stderr)
				isPlain(t, line, stdout.String()+stderr.String())
			}
		}
	}
}

// isPlain fails the test where a text does what only its author wants.
func isPlain(t *testing.T, line, text string) {
	t.Helper()
	const most = 64 << 10
	if text == "" || len(text) > most {
		t.Errorf("%s prints %d bytes", line, len(text))
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (!unicode.IsPrint(r) || unicode.IsMark(r)) {
			t.Errorf("%s prints %q in %.300q", line, r, text)
			return
		}
	}
	if i := strings.Index(text, "\n"+forged); i >= 0 {
		t.Errorf("%s prints a forged line: %.300q", line, text[max(0, i-150):])
	}
}

// A rune that is written in two parts is one rune, and a text that is no UTF-8 is seen
// to be none.
func TestPlainWriterJoinsRunes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parts []string
		want  string
	}{
		{[]string{"a√", "b"}, "a√b"},
		{[]string{"a\xe2", "\x88\x9ab"}, "a√b"},
		{[]string{"a\xe2", "\x88", "\x9a", "b"}, "a√b"},
		{[]string{"a\xe2", "b"}, "a?b"},
		{[]string{"\x1b[2J", "\u009b1m"}, "?[2J?1m"},
		{[]string{"\xc2", "\x9b1m"}, "?1m"},
	} {
		var out strings.Builder
		w := &plainWriter{w: &out}
		for _, part := range test.parts {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%q: %d, %v", part, n, err)
			}
		}
		if out.String() != test.want {
			t.Errorf("%q: %q, want %q", test.parts, out.String(), test.want)
		}
	}
}
