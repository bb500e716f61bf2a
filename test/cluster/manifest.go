package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// Apply creates or updates the objects of a YAML file, in its order, as the
// administrator would with `kubectl apply --server-side`.
func (c *Cluster) Apply(ctx context.Context, path string) error {
	objects, err := ReadManifest(path)
	if err != nil {
		return err
	}
	return c.apply(ctx, path, objects)
}

// apply is Apply for objects that were read from the path.
func (c *Cluster) apply(ctx context.Context, path string, objects []*unstructured.Unstructured) error {
	groups, err := restmapper.GetAPIGroupResources(c.admin.Discovery())
	if err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("apply %s: %w", path, err)
		}
		// Without a namespace this is the client for what has none.
		target := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		options := metav1.ApplyOptions{FieldManager: "taintlet-test", Force: true}
		if _, err := target.Apply(ctx, object.GetName(), object, options); err != nil {
			return fmt.Errorf("apply %s %s of %s: %w", kind.Kind, object.GetName(), path, err)
		}
	}
	return nil
}

// ReadManifest returns the objects of a YAML file, in its order.
func ReadManifest(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	defer func() { _ = file.Close() }()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(file), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
