package network

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

// Agents that reach the API server by its Service, as pods do. Without a default route, or the
// rules of kube-proxy, nothing leads there. The taint is set meanwhile, by the API server's own
// address.
func TestServiceOfTheAPIServer(t *testing.T) {
	onlyLong(t)
	s := require(t)
	agents := s.Start(t, few, fleet.Quick)
	s.listAPIServer(t)
	rule := fmt.Sprintf("ip daddr 10.96.0.1 tcp dport 443 dnat to %s", s.serverAddress())
	serve := func(a *fleet.Agent) error {
		return a.NFT("table ip kubernetes {\nchain output { type nat hook output priority -100;\n" + rule + "\n}\n}\n")
	}
	for _, a := range agents {
		path := filepath.Join(a.Dir, "kubeconfig")
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.ReplaceAll(text, []byte(s.Cluster.URL()), []byte("https://10.96.0.1")), 0o644) //nolint:gosec // the agent is not root
		}
		if err := errors.Join(err, serve(a), a.Process.Kill()); err != nil {
			t.Fatal(err)
		}
		a.Run()
		a.WaitReady()
	}
	s.WaitKnown(t, few)
	fleet.WaitSamples(t, agents, 2)
	flush := func(a *fleet.Agent) error { return errors.Join(a.NFT("delete table ip kubernetes"), a.DropServices()) }
	restore := func(a *fleet.Agent) error { return errors.Join(serve(a), s.Network.RestoreServices(a.Host)) }
	for _, i := range []incident{
		{name: "The default route of one host is gone, and the API server is behind a Service", fault: command([]int{2}, "rule del pref 40000", "rule add pref 40000 lookup 100"), tainted: []int{2}, within: 15 * time.Second},
		{name: "kube-proxy's rules are gone on one host", fault: fault{onHosts([]int{3}, flush), onHosts([]int{3}, restore)}, tainted: []int{3}, within: later},
	} {
		t.Run(i.name, func(t *testing.T) { writeTable(t, few, []result{s.happens(t, agents, i)}) })
	}
}

// listAPIServer makes the EndpointSlice that API servers keep of themselves.
func (s scene) listAPIServer(t *testing.T) {
	t.Helper()
	at := s.serverAddress()
	slices := s.Cluster.Client().DiscoveryV1().EndpointSlices(corev1.NamespaceDefault)
	if _, err := slices.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(at.Port()))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
