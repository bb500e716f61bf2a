// Package dnspods says by which EndpointSlices the pods of the cluster's DNS are found.
package dnspods

import (
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Where is the namespace of the EndpointSlices and their label selector.
type Where struct{ Namespace, Selector string }

// Default selects the label that the Services of the cluster's DNS share. Their names differ:
// kubeadm and most providers use kube-dns, RKE2 rke2-coredns-rke2-coredns, kubespray coredns, and
// NodeLocal DNSCache adds kube-dns-upstream.
func Default() Where { return Where{metav1.NamespaceSystem, "k8s-app=kube-dns"} }

// Parse reads what String writes.
func Parse(text string) (Where, error) {
	namespace, selector, found := strings.Cut(text, "/")
	if errs := validation.IsDNS1123Label(namespace); !found || len(errs) > 0 {
		return Where{}, fmt.Errorf("%q: must be namespace/selector, such as %s", text, Default())
	}
	if parsed, err := labels.Parse(selector); err != nil || parsed.Empty() {
		return Where{}, fmt.Errorf("%q: %q must be a label selector, such as %s", text, selector, Default().Selector)
	}
	return Where{namespace, selector}, nil
}

// String is namespace/selector.
func (d Where) String() string { return d.Namespace + "/" + d.Selector }

// Selectors are those of the EndpointSlices; the first that finds some counts. By
// default a Service of the name kube-dns is taken too, which may lack the label.
func (d Where) Selectors() []string {
	if d == Default() {
		return []string{d.Selector, OfService("kube-dns")}
	}
	return []string{d.Selector}
}

// OfService selects the EndpointSlices of a Service.
func OfService(name string) string { return discoveryv1.LabelServiceName + "=" + name }
