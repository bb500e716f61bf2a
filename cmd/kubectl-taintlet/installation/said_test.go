package installation

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// An agent that is not ready is asked why, through the API server, and only so many are.
func TestAgentsTellWhyTheyAreNotReady(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/api/v1/namespaces/ns/pods/taintlet-0:14808/proxy/readyz" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no"}`))
			return
		}
		http.Error(w, "the API server refuses writes", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	i := &Installation{}
	for n := range 5 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("taintlet-", n)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		p.Spec.Containers = []corev1.Container{{Name: Account, Ports: []corev1.ContainerPort{{ContainerPort: 14808}}}}
		i.Pods = append(i.Pods, p)
	}
	client.readSaid(t.Context(), i)
	if i.Said["taintlet-0"] != "the API server refuses writes" || i.Said["taintlet-1"] != "" || asked != askedAgents {
		t.Errorf("%q, %d agents were asked", i.Said, asked)
	}
}

// A reader who may list pods of the namespace only sees its agents, and none of a cleanup. Others are
// seen by those who may list all pods.
func TestPodsOfOtherNamespaces(t *testing.T) {
	for _, mayAll := range []bool{true, false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			items := `{"metadata": {"namespace": "ns", "name": "a"}}, {"metadata": {"namespace": "ns", "name": "c", "ownerReferences": [{"kind": "Job"}]}}`
			switch {
			case r.URL.Path == "/api/v1/pods" && mayAll:
				items += `, {"metadata": {"namespace": "other", "name": "b"}}`
			case r.URL.Path == "/api/v1/pods":
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden"}`))
				return
			}
			_, _ = w.Write([]byte(`{"kind": "PodList", "apiVersion": "v1", "items": [` + items + `]}`))
		}))
		client, err := NewClient(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		i := &Installation{Namespace: "ns"}
		if err := client.readPods(t.Context(), i); err != nil || len(i.Pods) != 1 || (len(i.Others) == 1) != mayAll {
			t.Errorf("%t: %v, %d pods and %d others", mayAll, err, len(i.Pods), len(i.Others))
		}
		server.Close()
	}
}

// While a watch refreshes, the permissions of the agents are asked until all are granted.
func TestPermissionsAreAskedUntilGranted(t *testing.T) {
	asked, isGranted := 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound"}`))
			return
		}
		asked++
		_, _ = fmt.Fprintf(w, `{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": %t}}`, isGranted)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	all, err := needed("ns", "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range []int{len(all), len(all), 0} {
		isGranted, asked = round > 0, 0
		i, err := client.Read(t.Context(), "ns")
		if err != nil || asked != want || (len(i.MayNot) == 0) != isGranted {
			t.Errorf("round %d: %d questions, want %d; %q, %v", round, asked, want, i.MayNot, err)
		}
	}
}
