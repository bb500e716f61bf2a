package check

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// daemonSetsCheck names the DaemonSets whose pods do not start on a Node with a taint that
// the rules ask for. Kubernetes gives them tolerations for the well-known keys only.
func daemonSetsCheck() check {
	return check{
		name: "daemonsets", link: "docs/living-with-kubernetes.md#who-owns-a-taint",
		remedy: "add the toleration to the templates of those that every Node needs, such as the network's: their pods are neither started nor replaced while a Node has the taint",
		ask: func(ctx context.Context, s *scene) answer {
			cfg, err := s.inUse(ctx)
			if err != nil {
				return skip("which DaemonSets tolerate the taints: the configuration is not known")
			}
			kept, err := s.me.find(ctx, admission+"mutatingadmissionpolicybindings/"+taints.KeepPolicyName, nil)
			if err != nil {
				return unread("deploy/keep.yaml", err)
			}
			var all struct {
				Items []struct {
					Metadata struct{ Name, Namespace string }
					Spec     struct {
						Template struct{ Spec corev1.PodSpec }
					}
				}
			}
			if err := s.me.get(ctx, "/apis/apps/v1/daemonsets", &all); err != nil {
				return unread("the DaemonSets", err)
			}
			var keys, names []string
			for _, pair := range ownTolerated(cfg, kept) {
				keys = append(keys, pair.Key)
				for _, d := range all.Items {
					if name := d.Metadata.Namespace + "/" + d.Metadata.Name; !tolerates(d.Spec.Template.Spec.Tolerations, pair) && !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			}
			switch {
			case len(keys) == 0:
				return ok("Kubernetes gives all DaemonSets tolerations for the taints of the rules")
			case len(names) > 0:
				return warn("DaemonSets lack a toleration for %s: %s", listed(keys), listed(names))
			}
			return ok("all DaemonSets tolerate %s", listed(keys))
		},
	}
}

// ownTolerated are the NoSchedule pairs that a configuration leads to and that a
// DaemonSet tolerates by its own template only (AddOrUpdateDaemonPodTolerations in
// pkg/controller/daemon/util/daemonset_util.go, Kubernetes 1.36).
func ownTolerated(cfg *config.Config, kept bool) (pairs []taints.Pair) {
	facts := taints.Facts{LifecycleController: true, KeepPolicy: kept, StandInPrefix: cfg.StandInPrefix}
	for _, rule := range cfg.Policy().Rules {
		if via, pair := taints.Resolve(rule.Taint.Pair(), facts); via != taints.Kept && pair.Effect == taints.NoSchedule {
			pairs = append(pairs, pair)
		}
	}
	if key := cfg.Startup.Taint; key != "" {
		pairs = append(pairs, taints.Pair{Key: key, Effect: taints.NoSchedule})
	}
	return pairs
}

func tolerates(all []corev1.Toleration, pair taints.Pair) bool {
	return slices.ContainsFunc(all, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Logger{}, &corev1.Taint{Key: pair.Key, Effect: corev1.TaintEffect(pair.Effect)}, false)
	})
}

// autoscalersCheck compares the rules with what the autoscalers of the cluster make of
// their taints.
func autoscalersCheck() check {
	return check{
		name: "autoscalers", link: "docs/living-with-kubernetes.md#other-controllers",
		remedy: "set autoscaler: cluster-autoscaler in the configuration, or use keys of your own",
		ask: func(ctx context.Context, s *scene) answer {
			cfg, err := s.inUse(ctx)
			if err != nil {
				return skip("what autoscalers make of the taints: the configuration is not known")
			}
			isHard, err := s.karpenterTakesSoftForHard(ctx)
			if err != nil {
				return unread("Karpenter's NodePools", err)
			}
			isScaled, err := s.me.find(ctx, "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status", nil)
			if err != nil {
				return unread("whether cluster-autoscaler runs", err)
			}
			for _, rule := range cfg.Policy().Rules {
				switch taint := rule.Taint; {
				case isHard && taint.Effect == taints.PreferNoSchedule:
					return warn("Karpenter takes %s of %s for a hard taint: it adds a Node where pods could still use this one", taint.Pair(), rule.Condition).
						but("use NoSchedule, or give a NodePool's template a PreferNoSchedule taint: Karpenter then relaxes all of them")
				case isScaled && rule.Level == probes.Degraded && taints.IsUnreadyToAutoscaler(taint.Key):
					return warn("cluster-autoscaler counts Nodes with %s as unready; with more than 3 such Nodes and more than 45 %% of all, it stops", taint.Key)
				}
			}
			return ok("no autoscaler that is found misreads the taints of the rules")
		},
	}
}

// karpenterTakesSoftForHard reports whether the cluster has NodePools of Karpenter and
// none of them has a PreferNoSchedule taint in its template: then Karpenter does not relax
// such taints (NewScheduler in pkg/controllers/provisioning/scheduling/scheduler.go).
func (s *scene) karpenterTakesSoftForHard(ctx context.Context) (bool, error) {
	var pools struct {
		Items []struct {
			Spec struct {
				Template struct {
					Spec struct{ Taints []corev1.Taint }
				}
			}
		}
	}
	err := s.me.get(ctx, "/apis/karpenter.sh/v1/nodepools", &pools)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	for _, pool := range pools.Items {
		if slices.ContainsFunc(pool.Spec.Template.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }) {
			return false, nil
		}
	}
	return len(pools.Items) > 0, err
}
