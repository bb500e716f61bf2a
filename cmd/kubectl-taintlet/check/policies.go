package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	admission     = "/apis/admissionregistration.k8s.io/v1/"
	policyLink    = "deploy/README.md#permissions"
	policyRemedy  = "apply the manifest or upgrade the chart again: without its policies a stolen token can change every Node"
	keepLink      = "docs/living-with-kubernetes.md#who-owns-a-taint"
	keepEffectDoc = "docs/troubleshooting.md#the-taint-vanishes-within-a-second"
)

// denied reports whether the policy refused a request.
func denied(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

// mayNotImpersonate reports whether the check itself lacks a permission.
func mayNotImpersonate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "impersonate")
}

// refuses checks that a policy refuses a dry run of the agent that it has to refuse.
func (s *scene) refuses(ctx context.Context, policy, what string, try func(agent api, node string) error) answer {
	all, err := s.allNodes(ctx)
	if err != nil {
		return skip("whether the policy %s is in force: %v", policy, err)
	}
	agent, err := s.agent(all.names[0])
	if err != nil {
		return fail("%v", err)
	}
	switch err := try(agent, all.names[0]); {
	case denied(err, policy):
		return ok("the policy %s is in force: %s is refused", policy, what)
	case mayNotImpersonate(err):
		return skip("whether the policy %s is in force: you may not impersonate the agents' account", policy)
	case err == nil:
		return fail("the policy %s is not in force: %s is accepted", policy, what)
	default:
		return fail("the policy %s is not in force: %s is refused by something else: %v", policy, what, err)
	}
}

func nodesPolicyCheck() check {
	const policy = "taintlet-nodes"
	return check{
		name: "policy-nodes", remedy: policyRemedy, link: policyLink,
		ask: func(ctx context.Context, s *scene) answer {
			return s.refuses(ctx, policy, "an agent's write of somebody else's annotation", func(agent api, node string) error {
				patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{"example.com/taintlet-check": "1"}}}
				return agent.tryPatch(ctx, "/api/v1/nodes/"+node, patch, nil)
			})
		},
	}
}

func eventsPolicyCheck() check {
	const policy = "taintlet-events"
	return check{
		name: "policy-events", remedy: policyRemedy, link: policyLink,
		ask: func(ctx context.Context, s *scene) answer {
			return s.refuses(ctx, policy, "an agent's Event about another Node", func(agent api, node string) error {
				event := map[string]any{
					"apiVersion": "v1", "kind": "Event", "metadata": map[string]string{"name": "taintlet-check", "namespace": "default"},
					"involvedObject": map[string]string{"kind": "Node", "name": node + "-other"},
				}
				return agent.tryCreate(ctx, "/api/v1/namespaces/default/events", event)
			})
		},
	}
}

func leasesPolicyCheck() check {
	const policy = "taintlet-leases"
	return check{
		name: "policy-leases", remedy: policyRemedy, link: "deploy/README.md#eviction",
		ask: func(ctx context.Context, s *scene) answer {
			path := "/apis/coordination.k8s.io/v1/namespaces/" + s.namespace + "/leases/" + apiserver.SlotPrefix + "0"
			var lease map[string]any
			found, err := s.me.find(ctx, path, &lease)
			switch {
			case err != nil:
				return unread("the eviction slots", err)
			case !found:
				return ok("no Node may evict: there are no eviction slots")
			}
			return s.refuses(ctx, policy, "an agent's taking of a slot for another Node", func(agent api, node string) error {
				spec, _ := lease["spec"].(map[string]any)
				if spec == nil {
					spec = map[string]any{}
				}
				spec["holderIdentity"] = node + "-other"
				lease["spec"] = spec
				return agent.tryUpdate(ctx, path, lease)
			})
		},
	}
}

func keepObjectsCheck() check {
	return check{
		name: "keep-objects", link: keepLink,
		remedy: "apply deploy/keep.yaml, or install the chart with keep: null or true; without it stand-ins take the place of the well-known taints",
		ask: func(ctx context.Context, s *scene) answer {
			if minor := s.version.number(); minor > 0 && minor < keeping {
				return ok("stand-ins are used: Kubernetes 1.%d cannot have deploy/keep.yaml", minor)
			}
			var missing []string
			for _, kind := range []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
				found, err := s.me.find(ctx, admission+kind+"/"+taints.KeepPolicyName, nil)
				if err != nil {
					return unread("deploy/keep.yaml", err)
				}
				if !found {
					missing = append(missing, kind)
				}
			}
			switch len(missing) {
			case 0:
				return ok("the policy and the binding of deploy/keep.yaml are there")
			case 1:
				return fail("deploy/keep.yaml is there in part: %s %s is missing", missing[0], taints.KeepPolicyName)
			}
			return warn("deploy/keep.yaml is not installed")
		},
	}
}

func keepEffectCheck() check {
	return check{
		name: "keep-effect", link: keepEffectDoc,
		remedy: "apply deploy/keep.yaml again; its policy knows the node-lifecycle-controller by its user",
		ask: func(ctx context.Context, s *scene) answer {
			all, err := s.allNodes(ctx)
			switch {
			case err != nil:
				return skip("whether a kept taint stays: %v", err)
			case all.held == "":
				return skip("whether a kept taint stays: no Node has one now")
			}
			stays, err := s.isKept(ctx, all)
			switch {
			case mayNotImpersonate(err):
				return skip("whether a kept taint stays: you may not impersonate the node-lifecycle-controller")
			case err != nil:
				return fail("whether %s stays on Node %s cannot be tried: %v", all.heldKey, all.held, err)
			case !stays:
				return fail("the node-lifecycle-controller can remove %s from Node %s", all.heldKey, all.held)
			}
			return ok("a kept taint stays: a removal of %s by the node-lifecycle-controller was tried on Node %s (dry run)", all.heldKey, all.held)
		},
	}
}

// isKept tries to remove a held taint as the node-lifecycle-controller does.
func (s *scene) isKept(ctx context.Context, all *nodes) (bool, error) {
	controller, err := s.as(rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:node-controller", Groups: groupsOf("kube-system"),
	})
	if err != nil {
		return false, err
	}
	held := taints.Pair{Key: all.heldKey, Effect: taints.NoSchedule}
	left := slices.DeleteFunc(slices.Clone(all.heldTaints), func(t taints.Taint) bool { return t.Pair() == held })
	var after struct {
		Spec struct{ Taints []taints.Taint }
	}
	err = controller.tryPatch(ctx, "/api/v1/nodes/"+all.held, map[string]any{"spec": map[string]any{"taints": left}}, &after)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(after.Spec.Taints, func(t taints.Taint) bool { return t.Pair() == held }), nil
}

// served reports whether the API server knows a resource of
// admissionregistration.k8s.io/v1.
func (s *scene) served(ctx context.Context, resource string) (bool, error) {
	names, err := s.admission.once(func() (names []string, err error) {
		path := strings.TrimSuffix(admission, "/")
		var list struct{ Resources []struct{ Name string } }
		if err := s.me.get(ctx, path, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, r := range list.Resources {
			names = append(names, r.Name)
		}
		return names, nil
	})
	return slices.Contains(names, resource), err
}

func validatingCheck() check {
	return check{
		name: "validating", link: "deploy/README.md#permissions",
		remedy: "taintlet is not safe to install without ValidatingAdmissionPolicy: upgrade to Kubernetes 1.30",
		ask: func(ctx context.Context, s *scene) answer {
			found, err := s.served(ctx, "validatingadmissionpolicies")
			if !found {
				return fail("ValidatingAdmissionPolicy is not served%s", because(err))
			}
			return ok("ValidatingAdmissionPolicy is served")
		},
	}
}

func mutatingCheck() check {
	return check{
		name: "mutating", link: keepLink,
		remedy: "upgrade to Kubernetes 1.36 to keep the well-known taints; until then leave deploy/keep.yaml out, and stand-ins are used",
		ask: func(ctx context.Context, s *scene) answer {
			found, err := s.served(ctx, "mutatingadmissionpolicies")
			if !found {
				return warn("MutatingAdmissionPolicy is not served%s: the well-known taints cannot be kept", because(err))
			}
			return ok("MutatingAdmissionPolicy is served: the well-known taints can be kept")
		},
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + errors.Unwrap(err).Error()
}
