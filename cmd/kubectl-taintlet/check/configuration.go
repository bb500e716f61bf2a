package check

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// unusedOverrides are those that apply to no Node: its labels are others, or an earlier override has
// them too.
func (s *scene) unusedOverrides(context.Context) (unused []string, err error) {
	for _, member := range s.fleet.InUse.Family() {
		if member.Override != "" && !s.overridden[member] {
			unused = append(unused, member.Override)
		}
	}
	return unused, nil
}

// configs are the configuration, and then those of the overrides that apply to a Node.
func (s *scene) configs() []*config.Config {
	return slices.DeleteFunc(slices.Clone(s.fleet.InUse.Family()), func(c *config.Config) bool { return c.Override != "" && !s.overridden[c] })
}

func (s *scene) rules() (all []decide.Rule) {
	for _, cfg := range s.configs() {
		all = append(all, cfg.Policy().Rules...)
	}
	return all
}

func (s *scene) checkSlots(context.Context) (Line, error) {
	if !slices.ContainsFunc(s.rules(), func(r decide.Rule) bool { return r.Level == probes.Critical }) {
		return line(OK, "eviction is off: no rule for level Critical"), nil
	}
	return line(OK, "eviction is on: at most %s at the same time", terminal.Count(s.fleet.InUse.Eviction.Slots, "Node")), nil
}

// checkRulesAllowed tries, as an agent, to set all taints that the configuration asks
// for: the policies name them, and are changed apart from the ConfigMap where there is no
// chart.
func (s *scene) checkRulesAllowed(ctx context.Context) (Line, error) {
	all := map[taints.Pair]taints.Taint{}
	for _, cfg := range s.configs() { // one at a time, as a Node has one: the policy bounds how many taints are added
		wanted := wantedBy(cfg)
		maps.Copy(all, wanted)
		switch err := s.trySet(ctx, s.names[0], wanted); {
		case mayNotImpersonate(err):
			return Line{}, err
		case denied(err, "taintlet-nodes"):
			return line(Failed, "the policy taintlet-nodes refuses taints of the configuration: %v", err), nil
		case err != nil:
			return line(Failed, "an agent cannot set the taints of the configuration: %v", err).but("find out who refuses it: permissions, another admission policy or a webhook"), nil
		}
	}
	return line(OK, "the agents may set the taints of the configuration, and their stand-ins: %d", len(all)), nil
}

// wantedBy are the taints that a configuration can lead to, by their pairs.
func wantedBy(cfg *config.Config) map[taints.Pair]taints.Taint {
	wanted := map[taints.Pair]taints.Taint{}
	for _, rule := range cfg.Policy().Rules {
		pair := rule.Taint.Pair()
		wanted[pair] = pair.With(rule.Taint.Value)
		if rule.Level > probes.OK {
			standIn := taints.StandInFor(pair, cfg.KeyPrefix)
			wanted[standIn] = standIn.With(rule.Taint.Value)
		}
	}
	return wanted
}

// trySet tries, as the agent of a Node, to set taints beside those that are there.
func (s *scene) trySet(ctx context.Context, name string, wanted map[taints.Pair]taints.Taint) error {
	node, err := s.me.Node(ctx, name)
	if err != nil {
		return err
	}
	after := slices.Clone(node.Taints)
	for pair, taint := range wanted {
		if !node.Has(pair) {
			after = append(after, taint)
		}
	}
	agent, err := s.as(s.Namespace, account, name)
	if err != nil {
		return err
	}
	_, err = tryPatch(ctx, agent, account, name, map[string]any{"spec": map[string]any{"taints": after}})
	return err
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
