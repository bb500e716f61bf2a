package fleet

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
)

// labelled has one EndpointSlice, with the labels that the control plane copies from
// its Service.
type labelled struct {
	source
	namespace string
	slice     discoveryv1.EndpointSlice
}

func (l *labelled) ListSlices(_ context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	parsed, err := labels.Parse(selector)
	if err != nil || namespace != l.namespace || !parsed.Matches(labels.Set(l.slice.Labels)) {
		return nil, err
	}
	return []metav1.PartialObjectMetadata{{ObjectMeta: l.slice.ObjectMeta}}, nil
}

func (l *labelled) GetSlice(context.Context, string, string) (*discoveryv1.EndpointSlice, error) {
	return &l.slice, nil
}

// The pods of the cluster's DNS are found by what they are, as the installers make
// their Services.
func TestDNSPodsAreFoundByWhatTheyAre(t *testing.T) {
	for _, test := range []struct {
		name, namespace, service, label, value, port string
		number                                       int32
		where                                        string
		found                                        bool
	}{
		{"kubeadm, EKS, GKE, AKS, k3s", "kube-system", "kube-dns", "k8s-app", "kube-dns", "dns-tcp", 53, "", true},
		{"RKE2", "kube-system", "rke2-coredns-rke2-coredns", "k8s-app", "kube-dns", "tcp-53", 53, "", true},
		{"kubespray", "kube-system", "coredns", "k8s-app", "kube-dns", "dns-tcp", 53, "", true},
		{"behind NodeLocal DNSCache", "kube-system", "kube-dns-upstream", "k8s-app", "kube-dns", "dns-tcp", 53, "", true},
		{"by its name alone", "kube-system", "kube-dns", "app", "coredns", "dns-tcp", 53, "", true},
		{"another one", "kube-system", "my-dns", "app", "my-dns", "dns-tcp", 53, "", false},
		{"another one, configured", "kube-system", "my-dns", "app", "my-dns", "dns-tcp", 53, "kube-system/app=my-dns", true},
		{"OpenShift", "openshift-dns", "dns-default", "dns.operator.openshift.io/owning-dns", "default", "dns-tcp", 5353, "", false},
		{"OpenShift, configured", "openshift-dns", "dns-default", "dns.operator.openshift.io/owning-dns", "default", "dns-tcp", 5353, "openshift-dns/dns.operator.openshift.io/owning-dns=default", true},
		{"metrics only", "kube-system", "kube-dns-metrics", "k8s-app", "kube-dns", "metrics", 9153, "", false},
	} {
		metrics, one, node := "metrics", int32(9153), "node-1"
		l := &labelled{namespace: test.namespace, slice: discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: test.service + "-abc", Labels: map[string]string{test.label: test.value, discoveryv1.LabelServiceName: test.service}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: &metrics, Port: &one}, {Name: &test.port, Port: &test.number}},
			Endpoints:   []discoveryv1.Endpoint{{NodeName: &node, Addresses: []string{"10.244.1.2"}}},
		}}
		o := Options{Node: "node-0", Source: l, Log: slog.New(slog.DiscardHandler)}
		if test.where != "" {
			var err error
			if o.DNSPods, err = dnspods.Parse(test.where); err != nil {
				t.Fatal(err)
			}
		}
		f := New(o)
		if err := f.readDNS(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := netip.AddrPortFrom(netip.MustParseAddr("10.244.1.2"), uint16(test.number))
		if got := f.Surroundings().DNSPods; (len(got) == 1 && got[0] == want) != test.found {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
