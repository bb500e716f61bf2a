package installation

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is something of an installation that a report shows.
type Object struct {
	// Name is a word for it, and What a sentence.
	Name, What string
	resource   schema.GroupVersionResource
	namespace  string
	options    metav1.ListOptions
	reduce     func(object map[string]any)
}

// Objects are what a report shows.
func (r *Reader) Objects() []Object {
	core, admission, all := corev1.SchemeGroupVersion.WithResource, admissionv1.SchemeGroupVersion.WithResource, metav1.ListOptions{}
	none := func(map[string]any) {}
	return []Object{
		{"configmap", "the configuration of the agents", core("configmaps"), r.namespace, Labelled(), onlyConfig},
		{"daemonsets", "the agents' DaemonSet", appsv1.SchemeGroupVersion.WithResource("daemonsets"), r.namespace, Labelled(), none},
		{"pods", "the agents' pods", core("pods"), r.namespace, Labelled(), none},
		{"pod-events", "the Events of that namespace", core("events"), r.namespace, all, none},
		{"events", "taintlet's Events about Nodes", core("events"), metav1.NamespaceDefault, metav1.ListOptions{FieldSelector: aboutNodes}, none},
		{"leases", "the eviction slots", coordinationv1.SchemeGroupVersion.WithResource("leases"), r.namespace, all, none},
		{"validating-policies", "the admission policies", admission("validatingadmissionpolicies"), "", Labelled(), none},
		{"validating-bindings", "their bindings", admission("validatingadmissionpolicybindings"), "", Labelled(), none},
		{"mutating-policies", "the policies of deploy/keep.yaml", admission("mutatingadmissionpolicies"), "", Labelled(), none},
		{"mutating-bindings", "their bindings", admission("mutatingadmissionpolicybindings"), "", Labelled(), none},
		{"nodes", "of each Node: taints, conditions, and taintlet's annotations", core("nodes"), "", all, reduceNode},
	}
}

// Published reads an Object, and leaves out what a report must not show: values of
// environment variables, and annotations, which may repeat them.
func (r *Reader) Published(ctx context.Context, o Object) ([]map[string]any, error) {
	objects := []map[string]any{}
	err := Each(ctx, r.client.Dynamic.Resource(o.resource).Namespace(o.namespace).List, o.options, func(u *unstructured.Unstructured) {
		publish(u.Object)
		o.reduce(u.Object)
		objects = append(objects, u.Object)
	})
	return objects, err
}

// publish removes what is not to be published, at any depth.
func publish(value any) {
	switch value := value.(type) {
	case map[string]any:
		if annotations, ok := value["annotations"].(map[string]any); ok {
			for name := range annotations {
				if !strings.HasPrefix(name, "taintlet.dev/") {
					delete(annotations, name)
				}
			}
		}
		hideEnv(value["env"])
		for _, inner := range value {
			publish(inner)
		}
	case []any:
		for _, inner := range value {
			publish(inner)
		}
	}
}

// hideEnv replaces the values of environment variables.
func hideEnv(env any) {
	variables, _ := env.([]any)
	for _, variable := range variables {
		if v, ok := variable.(map[string]any); ok && v["value"] != nil {
			v["value"] = "(left out)"
		}
	}
}

// onlyConfig keeps of a ConfigMap the configuration.
func onlyConfig(object map[string]any) {
	data, _ := object["data"].(map[string]any)
	object["data"] = map[string]any{ConfigKey: data[ConfigKey]}
	delete(object, "binaryData")
}

// reduceNode keeps of a Node what taintlet reads and writes.
func reduceNode(object map[string]any) {
	inner := func(key string) map[string]any {
		found, _ := object[key].(map[string]any)
		return found
	}
	meta, spec, status := inner("metadata"), inner("spec"), inner("status")
	kept := map[string]any{
		"metadata": map[string]any{"name": meta["name"], "annotations": meta["annotations"], "managedFields": meta["managedFields"]},
		"spec":     map[string]any{"taints": spec["taints"], "unschedulable": spec["unschedulable"]},
		"status":   map[string]any{"conditions": status["conditions"]},
	}
	clear(object)
	for key, value := range kept {
		object[key] = value
	}
}
