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
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
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

// serves asks whether a resource is served: it is that line, or the other one.
func serves(resource string, served, not Line) func(*scene, context.Context) (Line, error) {
	return func(s *scene, _ context.Context) (Line, error) {
		switch {
		case s.fleet.Installation.Served == nil:
			return Line{}, untold("the API server does not list the resources that it serves")
		case s.fleet.Installation.Served[resource].Empty():
			return not, nil
		}
		return served, nil
	}
}

// unusedOverrides are those that apply to no Node: its labels are others, or an earlier override has
// them too.
func (s *scene) unusedOverrides(context.Context) (unused []string, err error) {
	for _, member := range s.fleet.InUse.Family {
		if member.Override != "" && !s.overridden[member] {
			unused = append(unused, member.Override)
		}
	}
	return unused, nil
}

// configs are the configuration, and then those of the overrides that apply to a Node.
func (s *scene) configs() []*config.Config {
	return slices.DeleteFunc(slices.Clone(s.fleet.InUse.Family), func(c *config.Config) bool { return c.Override != "" && !s.overridden[c] })
}

func (s *scene) rules() (all []decide.Rule) {
	for _, cfg := range s.configs() {
		all = append(all, cfg.Policy().Rules...)
	}
	return all
}

// checkDaemonSets names the DaemonSets whose pods do not start on a Node with a taint that
// the rules ask for. Kubernetes gives them tolerations for the well-known keys only.
func (s *scene) checkDaemonSets(ctx context.Context) (Line, error) {
	all, err := installation.List[*appsv1.DaemonSet](ctx, s.me.AppsV1().DaemonSets(metav1.NamespaceAll).List, metav1.ListOptions{})
	if err != nil {
		return Line{}, err
	}
	var keys, names []string
	for _, pair := range s.ownTolerated(s.fleet.Installation.HasKeep()) {
		keys = append(keys, pair.Key)
		for _, d := range all {
			if name := d.Namespace + "/" + d.Name; !tolerates(d.Spec.Template.Spec.Tolerations, pair) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch {
	case len(keys) == 0:
		return line(OK, "Kubernetes gives all DaemonSets tolerations for the taints of the rules"), nil
	case len(names) > 0:
		return line(Warning, "DaemonSets lack a toleration for %s: %s", terminal.Listed(keys), terminal.Listed(names)), nil
	}
	return line(OK, "all DaemonSets tolerate %s", terminal.Listed(keys)), nil
}

// ownTolerated are the NoSchedule pairs that the rules lead to and that a
// DaemonSet tolerates by its own template only (AddOrUpdateDaemonPodTolerations in
// pkg/controller/daemon/util/daemonset_util.go, Kubernetes 1.36).
func (s *scene) ownTolerated(kept bool) (pairs []taints.Pair) {
	facts := taints.Facts{KeepPolicy: kept, StandInPrefix: s.fleet.InUse.KeyPrefix}
	for _, rule := range s.rules() {
		if via, pair := taints.Resolve(rule.Taint.Pair(), facts); via != taints.Kept && pair.Effect == taints.NoSchedule && !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	if key := s.fleet.InUse.Startup.Taint; key != "" {
		pairs = append(pairs, taints.Pair{Key: key, Effect: taints.NoSchedule})
	}
	return pairs
}

func tolerates(all []corev1.Toleration, pair taints.Pair) bool {
	return slices.ContainsFunc(all, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Logger{}, &corev1.Taint{Key: pair.Key, Effect: corev1.TaintEffect(pair.Effect)}, false)
	})
}

// checkAutoscalers compares the rules' taints with the way in which the cluster's autoscalers treat
// them.
func (s *scene) checkAutoscalers(ctx context.Context) (Line, error) {
	isHard, err := s.karpenterTakesSoftForHard(ctx)
	if err != nil {
		return Line{}, err
	}
	_, err = s.me.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	isScaled := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return Line{}, err
	}
	for _, rule := range s.rules() {
		switch taint := rule.Taint; {
		case isHard && taint.Effect == taints.PreferNoSchedule:
			return line(Warning, "Karpenter treats %s of %s as a hard taint: it adds a Node although pods could still use this one", taint.Pair(), rule.Condition).
				but("use NoSchedule, or give a NodePool's template a PreferNoSchedule taint: Karpenter then relaxes all of them"), nil
		case isScaled && rule.Level == probes.Degraded && taints.IsUnreadyToAutoscaler(taint.Key):
			return line(Warning, "cluster-autoscaler counts Nodes with %s as unready; with more than 3 such Nodes and more than 45 %% of all, it stops", taint.Key), nil
		}
	}
	return line(OK, "no known autoscaler misreads the taints of the rules"), nil
}

// karpenterTakesSoftForHard reports whether the cluster has NodePools of Karpenter and
// none of them has a PreferNoSchedule taint in its template: then Karpenter does not relax
// such taints (NewScheduler in pkg/controllers/provisioning/scheduling/scheduler.go).
func (s *scene) karpenterTakesSoftForHard(ctx context.Context) (bool, error) {
	resource := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	pools, err := s.me.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	relaxes := slices.ContainsFunc(pools.Items, func(pool unstructured.Unstructured) bool {
		all, _, _ := unstructured.NestedSlice(pool.Object, "spec", "template", "spec", "taints")
		return slices.ContainsFunc(all, func(taint any) bool {
			fields, _ := taint.(map[string]any)
			return fields["effect"] == string(corev1.TaintEffectPreferNoSchedule)
		})
	})
	return len(pools.Items) > 0 && !relaxes, nil
}

// unwatchedDisks are those of the container runtime and of the kubelet, where no path of a
// configuration is known to be on them. In the chart's pods / and /scratch are.
func (s *scene) unwatchedDisks(context.Context) (unwatched []string, err error) {
	for _, cfg := range s.configs() {
		for _, condition := range cfg.Conditions {
			disk, isWatched := condition.Section.(*config.Disk)
			for _, d := range [...]struct{ whose, path string }{{"the container runtime", "/"}, {"the kubelet", "/scratch"}} {
				isOnIt := func(path string) bool { return path == d.path || strings.HasPrefix(path, "/var/lib/") }
				if isWatched && !slices.ContainsFunc(disk.Paths, isOnIt) {
					unwatched = append(unwatched, strings.TrimSuffix(d.whose+" in "+cfg.Override, " in "))
				}
			}
		}
	}
	return unwatched, nil
}

func (s *scene) checkDaemonSet(context.Context) (Line, error) {
	d, err := s.agents()
	if err != nil {
		return Line{}, err
	}
	switch n := d.Status; {
	case n.NumberReady < n.DesiredNumberScheduled: // of pods that nobody can name
		return line(Failed, "%d of %d agents are ready", n.NumberReady, n.DesiredNumberScheduled), nil
	case n.UpdatedNumberScheduled < n.DesiredNumberScheduled:
		return line(Warning, "%d of %d agents are of the DaemonSet's newest version", n.UpdatedNumberScheduled, n.DesiredNumberScheduled), nil
	default:
		return line(OK, "all %d agents are ready", n.DesiredNumberScheduled), nil
	}
}

func (s *scene) checkSigns(context.Context) (Line, error) {
	if s.report.Summary.Agents == 0 {
		return line(Failed, "no agent has written its Node yet"), nil
	}
	return line(OK, "all agents write their Nodes: %s", s.report.Summary), nil
}

func (s *scene) checkService(ctx context.Context) (Line, error) {
	service, err := s.me.CoreV1().Services(s.Namespace).Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return line(Failed, "the Service %s is missing in namespace %s", account, s.Namespace), nil
	case err != nil:
		return Line{}, err
	case service.Spec.ClusterIP != corev1.ClusterIPNone:
		return line(Warning, "the Service %s has the address %s: it must be headless", account, service.Spec.ClusterIP), nil
	}
	ready, _, err := s.endpoints(ctx, s.Namespace, discoveryv1.LabelServiceName+"="+account)
	if err != nil {
		return Line{}, err
	}
	if d, err := s.agents(); err == nil && len(ready) < int(d.Status.NumberReady) {
		return line(Failed, "the Service %s lists %d agents, and %d are ready", account, len(ready), d.Status.NumberReady), nil
	}
	return line(OK, "the Service lists all ready agents: %d", len(ready)), nil
}

// endpoints returns the ready pods of the EndpointSlices with a label, each with its Node, and
// their Services, each once.
func (s *scene) endpoints(ctx context.Context, namespace, selector string) (pods, services []string, err error) {
	found, err := s.me.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, nil, err
	}
	for _, slice := range found.Items {
		services = append(services, slice.Labels[discoveryv1.LabelServiceName])
		for _, e := range slice.Endpoints {
			if *cmp.Or(e.Conditions.Ready, new(true)) { // which is so where nothing else is said
				pods = append(pods, fmt.Sprintf("%s (%s)", cmp.Or(e.TargetRef, &corev1.ObjectReference{}).Name, *cmp.Or(e.NodeName, new(""))))
			}
		}
	}
	slices.Sort(pods)
	slices.Sort(services)
	return slices.Compact(pods), slices.Compact(services), nil
}

// checkDNSPods names the pods that class pods connects to. Without them nothing tells
// that the overlay of a host is broken.
func (s *scene) checkDNSPods(ctx context.Context) (Line, error) {
	where := s.fleet.Installation.DNSPods()
	for _, selector := range where.Selectors() {
		pods, services, err := s.endpoints(ctx, where.Namespace, selector)
		if err != nil {
			return Line{}, err
		}
		if len(pods) > 0 {
			return line(OK, "the agents probe the DNS pods of Service %s in %s: %s", terminal.Listed(services), where.Namespace, terminal.Listed(pods)), nil
		}
	}
	return line(Warning, "no ready DNS pods are found by %s: the agents do not detect when the pod network fails on one Node", where), nil
}

// hasNamespace asks whether the agents' pods have a field by which they see the host.
func hasNamespace(field, what string, has func(corev1.PodSpec) bool) func(*scene, context.Context) (Line, error) {
	return func(s *scene, _ context.Context) (Line, error) {
		d, err := s.agents()
		switch {
		case err != nil:
			return Line{}, err
		case !has(d.Spec.Template.Spec):
			return line(Failed, "the agents lack %s: they do not see the %s of the host", field, what), nil
		}
		return line(OK, "the agents have %s: they see the %s of the host", field, what), nil
	}
}
