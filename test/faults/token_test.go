package faults

import (
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// identify gives the agent a token for the Node as it is now, in a file as a pod has it.
func (r *runner) identify() {
	s := r.scene
	as, err := bed.IdentityIn(s.t.Context(), s.c, s.berth, s.name)
	if err == nil {
		err = r.give(as.BearerToken)
	}
	if err == nil {
		as.BearerToken, as.BearerTokenFile = "", r.token
		err = cluster.WriteKubeconfig(r.kubeconfig+".new", r.proxy.configFor(as))
	}
	if err == nil { // at once: a process may be about to read it
		err = os.Rename(r.kubeconfig+".new", r.kubeconfig)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// give puts a token in place as a kubelet does.
func (r *runner) give(token string) error {
	if err := os.WriteFile(r.token+".new", []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(r.token+".new", r.token)
}

// rotateToken gives the agent another token, as a kubelet does before the old one is over.
func (s *scene) rotateToken(uint64) (end func()) {
	s.newestAgent().identify()
	return nothing
}

// expireToken starts the agent with a token that is over. The new one comes later, into the
// file of a process that goes on.
func (s *scene) expireToken(uint64) (end func()) {
	r := s.newestAgent()
	valid, err := os.ReadFile(r.token)
	if err != nil {
		s.judge.complain(err.Error())
		return nothing
	}
	expired, err := s.c.Expired(string(valid))
	if err == nil {
		err = r.give(expired)
	}
	if err != nil {
		s.judge.complain(err.Error())
		return nothing
	}
	r.kill()
	return r.identify
}

// The API server itself refuses the token that is over, and takes the one from which it is made.
func TestExpiredTokenIsRefused(t *testing.T) {
	s := newScene(t, "expired-token")
	as, err := bed.IdentityIn(t.Context(), s.c, s.berth, s.name)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := s.c.Expired(as.BearerToken)
	if err != nil {
		t.Fatal(err)
	}
	for token, isRefused := range map[string]bool{as.BearerToken: false, expired: true} {
		client, err := kubernetes.NewForConfig(s.c.WithToken(token))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CoreV1().Nodes().Get(t.Context(), s.name, metav1.GetOptions{})
		if apierrors.IsUnauthorized(err) != isRefused {
			t.Errorf("refused: %v, want %t", err, isRefused)
		}
	}
}
