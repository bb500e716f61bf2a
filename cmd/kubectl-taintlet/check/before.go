package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/restmapper"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func (s *scene) checkVersion(_ context.Context) (Line, error) {
	if s.versionErr != nil {
		return Line{}, s.versionErr
	}
	oldest := version.MajorMinor(1, 30)
	if found, err := version.ParseGeneric(s.version); err != nil || found.LessThan(oldest) {
		return line(Failed, "Kubernetes is %s, older than %s", s.version, oldest), nil
	}
	return line(OK, "Kubernetes is %s, %s or later", s.version, oldest), nil
}

func (s *scene) checkNodes(context.Context) (Line, error) {
	switch {
	case errors.Is(s.readErr, errNoNodes):
		return line(Failed, "%v", s.readErr).but("add a Node first: most of the other checks need one"), nil
	case s.readErr != nil:
		return line(Failed, "the Nodes cannot be listed: %v", s.readErr), nil
	}
	return line(OK, "the Nodes can be listed: %d", len(s.names)), nil
}

// checkCreatable tries to create the objects of the manifests. An account that may create roles can
// grant only permissions that it has. Kinds that the API server does not serve are those of
// keep.yaml, which another check reports.
func (s *scene) checkCreatable(ctx context.Context) (Line, error) {
	objects, err := installation.Manifests(s.Namespace)
	groups, errGroups := restmapper.GetAPIGroupResources(s.me.Discovery())
	if err = errors.Join(err, errGroups); err != nil {
		return Line{}, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	var refused, wrong []string
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			continue
		}
		_, err = s.me.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, tryCreate(tellsWhoAsks))
		switch {
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err): // its namespace or its role is not there yet
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"): // and not of its contents
			p := installation.Permission{Verb: "create", Resource: mapping.Resource.Resource, Namespace: object.GetNamespace()}
			refused = append(refused, p.String())
		default:
			wrong = append(wrong, fmt.Sprintf("%s %s: %v", kind.Kind, object.GetName(), err))
		}
	}
	if len(refused) > 0 {
		wrong = append([]string{"you may not " + terminal.Listed(slices.Compact(refused))}, wrong...)
	}
	if len(wrong) > 0 {
		return line(Failed, "%s", strings.Join(wrong, "; ")), nil
	}
	return line(OK, "you may create the objects of taintlet and grant their permissions: %d, as a dry run shows", len(objects)), nil
}

func (s *scene) checkNamespace(ctx context.Context) (Line, error) {
	namespace, err := s.me.CoreV1().Namespaces().Get(ctx, s.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return line(OK, "the namespace %s does not exist yet: create it as documented", s.Namespace), nil
	case err != nil:
		return Line{}, err
	case namespace.DeletionTimestamp != nil:
		return line(Failed, "the namespace %s is being deleted", s.Namespace).but("wait until it is gone; a finalizer may keep it"), nil
	}
	pod, err := podLikeOurs(s.Namespace)
	if err == nil {
		_, err = s.me.CoreV1().Pods(s.Namespace).Create(ctx, pod, tryCreate(tellsWhoAsks))
	}
	switch {
	case apierrors.IsForbidden(err):
		return line(Failed, "the namespace %s refuses the agents' pods: %v", s.Namespace, err), nil
	case err != nil:
		return Line{}, err
	}
	return line(OK, "the namespace %s accepts pods with hostNetwork and hostPID", s.Namespace), nil
}

// podLikeOurs is a pod of the DaemonSet, but for its account: that is not there yet.
func podLikeOurs(namespace string) (*corev1.Pod, error) {
	objects, err := installation.Manifests(namespace)
	for _, object := range objects {
		if object.GetKind() == "DaemonSet" {
			d := &appsv1.DaemonSet{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d)
			d.Spec.Template.Spec.ServiceAccountName = ""
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "taintlet-check-", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}, err
		}
	}
	return nil, err
}

// declares says that the pod takes the TCP port of its host. The scheduler goes by
// the same: it counts neither other protocols nor init containers that end (HostPorts
// in k8s.io/component-helpers/scheduling).
func declares(p *corev1.Pod, port int) bool {
	containers := slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	for _, c := range append(containers, p.Spec.Containers...) {
		for _, declared := range c.Ports {
			isOnHost := int(declared.HostPort) == port || p.Spec.HostNetwork && int(declared.ContainerPort) == port
			if isOnHost && (declared.Protocol == "" || declared.Protocol == corev1.ProtocolTCP) {
				return true
			}
		}
	}
	return false
}

// checkPort finds pods that take the agents' port of their host. There the agents stay
// Pending, or keep such a pod from being scheduled. A program that listens without
// being declared is not found: no API knows of it.
func (s *scene) checkPort(ctx context.Context) (Line, error) {
	var taken []string
	key, value, _ := strings.Cut(installation.Label, "=")
	options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	err := installation.Each(ctx, s.me.CoreV1().Pods(metav1.NamespaceAll).List, options, func(pod *corev1.Pod) {
		isAgent := pod.Namespace == s.Namespace && pod.Labels[key] == value
		if !isAgent && declares(pod, s.Port) {
			taken = append(taken, fmt.Sprintf("%s/%s (%s)", pod.Namespace, pod.Name, cmp.Or(pod.Spec.NodeName, "on no Node yet")))
		}
	})
	slices.Sort(taken)
	switch {
	case err != nil:
		return Line{}, err
	case len(taken) > 0:
		return line(Failed, "pods declare port %d of their hosts: %s", s.Port, terminal.Listed(taken)), nil
	}
	return line(OK, "no pod declares port %d of its host", s.Port), nil
}
