package installation

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
)

// Object is something of an installation that a report shows.
type Object struct {
	// Name is a word for it, and What a sentence.
	Name, What string
	path       string
	query      url.Values
	reduce     func(object map[string]any)
}

// Objects are what a report shows.
func (r *Reader) Objects() []Object {
	events := url.Values{"fieldSelector": {"involvedObject.kind=Node,source=" + Account}}
	none := func(map[string]any) {}
	return []Object{
		{"configmap", "the configuration of the agents", r.within("/api/v1", "configmaps"), labelled(), onlyConfig},
		{"daemonsets", "the agents' DaemonSet", r.within("/apis/apps/v1", "daemonsets"), labelled(), none},
		{"pods", "the agents' pods", r.within("/api/v1", "pods"), labelled(), none},
		{"pod-events", "the Events of that namespace", r.within("/api/v1", "events"), url.Values{}, none},
		{"events", "taintlet's Events about Nodes", "/api/v1/namespaces/default/events", events, none},
		{"leases", "the eviction slots", r.within("/apis/coordination.k8s.io/v1", "leases"), url.Values{}, none},
		{"validating-policies", "the admission policies", admission + "validatingadmissionpolicies", labelled(), none},
		{"validating-bindings", "their bindings", admission + "validatingadmissionpolicybindings", labelled(), none},
		{"mutating-policies", "the policies of deploy/keep.yaml", admission + "mutatingadmissionpolicies", labelled(), none},
		{"mutating-bindings", "their bindings", admission + "mutatingadmissionpolicybindings", labelled(), none},
		{"nodes", "of each Node: taints, conditions, and taintlet's annotations", "/api/v1/nodes", url.Values{}, reduceNode},
	}
}

// Published reads an Object, and leaves out what a report must not show: values of
// environment variables, and annotations, which may repeat them.
func (r *Reader) Published(ctx context.Context, o Object) ([]map[string]any, error) {
	all, err := list[json.RawMessage](ctx, r.api, o.path, o.query)
	objects := []map[string]any{}
	for _, data := range all {
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			return nil, err
		}
		publish(object)
		o.reduce(object)
		objects = append(objects, object)
	}
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
