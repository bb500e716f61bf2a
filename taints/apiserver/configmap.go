package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ConfigFile reads a file of a ConfigMap.
func (c *Client) ConfigFile(ctx context.Context, namespace, name, file string) ([]byte, error) {
	var found corev1.ConfigMap
	err := c.kept.Get().Namespace(namespace).Resource("configmaps").Name(name).Do(ctx).Into(&found)
	if err != nil {
		return nil, explain("get", "configmaps", namespace+"/"+name, err)
	}
	text, isThere := found.Data[file]
	if !isThere {
		return nil, fmt.Errorf("the ConfigMap %s/%s has no %s", namespace, name, file)
	}
	return []byte(text), nil
}
