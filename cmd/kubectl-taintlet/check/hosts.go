package check

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/cmd/terminal"
)

func (s *scene) checkHostNetwork(ctx context.Context) answer {
	return s.hasNamespace(ctx, "hostNetwork", "routes", func(spec *corev1.PodSpec) bool { return spec.HostNetwork })
}

func (s *scene) checkHostPID(ctx context.Context) answer {
	if all, err := s.allNodes(ctx); err == nil && len(all.otherPIDs) > 0 {
		return warn("agents say that they are not in the host's PID namespace: %s", terminal.Listed(all.otherPIDs)).
			but("set hostPID: true in the DaemonSet's template, as the chart does. Where it is set, the Node is itself a container, and its own limit of PIDs is not seen")
	}
	return s.hasNamespace(ctx, "hostPID", "limits of PIDs and mounts", func(spec *corev1.PodSpec) bool { return spec.HostPID })
}

func (s *scene) hasNamespace(ctx context.Context, field, what string, has func(*corev1.PodSpec) bool) answer {
	d, err := s.agents(ctx)
	switch {
	case err != nil:
		return skip("whether the agents have %s: the DaemonSet cannot be read", field)
	case !has(&d.Spec.Template.Spec):
		return fail("the agents lack %s: they do not see the %s of the host", field, what)
	}
	return ok("the agents have %s: they see the %s of the host", field, what)
}

// nodeQuestion is asked about each Node.
type nodeQuestion struct {
	whether string
	// ofAgents: where there are no agents, nobody can tell.
	ofAgents bool
	// found returns the Nodes for which it is not so.
	found         func(all *nodes) []string
	trouble, fine string
}

func (q nodeQuestion) ask(ctx context.Context, s *scene) answer {
	all, err := s.allNodes(ctx)
	switch {
	case err != nil:
		return skip("%s: %v", q.whether, err)
	case q.ofAgents && all.report.Summary.Agents == 0:
		return skip("%s: there are no agents", q.whether)
	}
	if found := q.found(all); len(found) > 0 {
		return warn("%s: %s", q.trouble, terminal.Listed(found))
	}
	return ok("%s", q.fine)
}

func (s *scene) checkKernel(ctx context.Context) answer {
	return nodeQuestion{
		whether: "whether the kernels have PSI",
		found:   func(all *nodes) []string { return all.oldKernels },
		trouble: "kernels are too old for PSI", fine: "no kernel is too old for PSI (Linux 4.20)",
	}.ask(ctx, s)
}

func (s *scene) checkUnknown(ctx context.Context) answer {
	return nodeQuestion{
		whether: "whether the agents can tell about all conditions", ofAgents: true,
		found:   func(all *nodes) []string { return all.unknown },
		trouble: "agents cannot tell about all conditions", fine: "the agents can tell about all conditions",
	}.ask(ctx, s)
}

func (s *scene) checkKubelet(ctx context.Context) answer {
	return nodeQuestion{
		whether: "whether the kubelets agree", ofAgents: true,
		found:   func(all *nodes) []string { return all.disagreeing },
		trouble: "conditions are bad for the kubelet and good for taintlet", fine: "no kubelet reports trouble that taintlet does not see",
	}.ask(ctx, s)
}
