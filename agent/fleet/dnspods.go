package fleet

import (
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DNSPods says by which EndpointSlices the pods of the cluster's DNS are found.
type DNSPods struct{ Namespace, Selector string }

// DefaultDNSPods has the label that Services of the cluster's DNS have, whatever their
// name is: kubeadm and most providers call it kube-dns, RKE2
// rke2-coredns-rke2-coredns, kubespray coredns, and NodeLocal DNSCache adds
// kube-dns-upstream.
func DefaultDNSPods() DNSPods { return DNSPods{metav1.NamespaceSystem, "k8s-app=kube-dns"} }

// ParseDNSPods reads what String writes.
func ParseDNSPods(text string) (DNSPods, error) {
	namespace, selector, found := strings.Cut(text, "/")
	if errs := validation.IsDNS1123Label(namespace); !found || len(errs) > 0 {
		return DNSPods{}, fmt.Errorf("%q: must be namespace/selector, such as %s", text, DefaultDNSPods())
	}
	if parsed, err := labels.Parse(selector); err != nil || parsed.Empty() {
		return DNSPods{}, fmt.Errorf("%q: %q must be a label selector, such as %s", text, selector, DefaultDNSPods().Selector)
	}
	return DNSPods{namespace, selector}, nil
}

// String is namespace/selector.
func (d DNSPods) String() string { return d.Namespace + "/" + d.Selector }

// Selectors are those of the EndpointSlices; the first that finds some counts. By
// default a Service of the name kube-dns is taken too, which may lack the label.
func (d DNSPods) Selectors() []string {
	if d == DefaultDNSPods() {
		return []string{d.Selector, ofService("kube-dns")}
	}
	return []string{d.Selector}
}

// ofService selects the EndpointSlices of a Service.
func ofService(name string) string { return discoveryv1.LabelServiceName + "=" + name }
