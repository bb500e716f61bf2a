package bed

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/test/cluster"
)

// Manifest is what a manifest of taintlet gives the agents.
type Manifest struct {
	// Config is the text of their configuration file.
	Config string

	container corev1.Container
}

// ShippedManifest reads deploy/taintlet.yaml.
func ShippedManifest() (*Manifest, error) {
	objects, err := cluster.Shipped()
	if err != nil {
		return nil, err
	}
	return ManifestOf(objects)
}

// ManifestOf returns what the objects of a manifest give the agents.
func ManifestOf(objects []*unstructured.Unstructured) (*Manifest, error) {
	var agents appsv1.DaemonSet
	var configuration corev1.ConfigMap
	var err error
	for _, object := range objects {
		switch object.GetKind() {
		case "DaemonSet":
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &agents))
		case "ConfigMap":
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &configuration))
		}
	}
	containers, text := agents.Spec.Template.Spec.Containers, configuration.Data["config.yaml"]
	if err != nil || len(containers) == 0 || text == "" {
		return nil, errors.Join(errors.New("the manifest lacks the agent or its configuration"), err)
	}
	return &Manifest{Config: text, container: containers[0]}, nil
}

// Env returns the environment of the agent of a Node, whose host has that address; empty:
// none is known.
func (m *Manifest) Env(node, hostIP string) []string {
	// As the kubelet fills resourceFieldRef in: bytes, and whole CPUs, rounded up.
	return []string{
		"GOMEMLIMIT=" + strconv.FormatInt(m.container.Resources.Limits.Memory().Value(), 10),
		"GOMAXPROCS=" + strconv.FormatInt(m.container.Resources.Requests.Cpu().Value(), 10),
		"NODE_NAME=" + node, "POD_NAME=" + Account + "-" + node, "POD_NAMESPACE=" + Namespace, "HOST_IP=" + hostIP,
	}
}

// WriteConfig writes the configuration into the folder and returns its path. A folder
// beside it takes the place of the volume /scratch.
func (m *Manifest) WriteConfig(folder string) (path string, err error) {
	scratch := filepath.Join(folder, "scratch")
	if err := os.MkdirAll(scratch, 0o755); err != nil { //nolint:gosec // agents are another user
		return "", err
	}
	path = filepath.Join(folder, "config.yaml")
	text := strings.ReplaceAll(m.Config, "/scratch", scratch)
	return path, errors.Join(GiveToAgents(scratch), os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // as above
}
