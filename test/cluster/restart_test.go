package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An API server that was killed is another process afterwards, and has what was
// written before.
func TestRestartAPIServer(t *testing.T) {
	t.Parallel()
	c := New(t, Options{WithoutControllerManager: true, WithoutScheduler: true})
	before := c.Processes()[APIServer]
	c.Register(t, "survivor")
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := c.Processes()[APIServer]; after == 0 || after == before {
		t.Errorf("process %d became %d", before, after)
	}
	if _, err := c.Client().CoreV1().Nodes().Get(t.Context(), "survivor", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
