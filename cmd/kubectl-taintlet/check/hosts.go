package check

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/problems"
)

func hostNetworkCheck() check {
	return check{
		name: "host-network", link: "docs/troubleshooting.md#a-condition-is-unknown",
		remedy: "set hostNetwork: true in the DaemonSet's template, as the chart does",
		ask: func(ctx context.Context, s *scene) answer {
			return s.hasNamespace(ctx, "hostNetwork", "routes", func(spec *corev1.PodSpec) bool { return spec.HostNetwork })
		},
	}
}

func hostPIDCheck() check {
	return check{
		name: "host-pid", link: "docs/troubleshooting.md#a-condition-is-unknown",
		remedy: "set hostPID: true in the DaemonSet's template, as the chart does",
		ask: func(ctx context.Context, s *scene) answer {
			return s.hasNamespace(ctx, "hostPID", "limits of PIDs and mounts", func(spec *corev1.PodSpec) bool { return spec.HostPID })
		},
	}
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

// isOldKernel reports whether Linux is older than 4.20, which brought PSI. What
// cannot be read is not old.
func isOldKernel(release string) bool {
	const major, minor = 4, 20
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	if errA != nil || errB != nil {
		return false
	}
	return a < major || a == major && b < minor
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
		return warn("%s: %s", q.trouble, listed(found))
	}
	return ok("%s", q.fine)
}

func kernelCheck() check {
	return check{
		name: "kernel", link: "docs/configuration.md#memory",
		remedy: "taintlet works without pressure stall information (PSI), and does not see stalls; use Linux 4.20 or later",
		ask: nodeQuestion{
			whether: "whether the kernels have PSI",
			found:   func(all *nodes) []string { return all.oldKernels },
			trouble: "kernels are too old for PSI", fine: "no kernel is too old for PSI (Linux 4.20)",
		}.ask,
	}
}

func unknownCheck() check {
	return check{
		name: "unknown", link: "docs/troubleshooting.md#a-condition-is-unknown",
		remedy: "read the condition's message: kubectl describe node",
		ask: nodeQuestion{
			whether: "whether the agents can tell about all conditions", ofAgents: true,
			found:   func(all *nodes) []string { return all.unknown },
			trouble: "agents cannot tell about all conditions", fine: "the agents can tell about all conditions",
		}.ask,
	}
}

func skewInWords(off time.Duration) string {
	if off > 0 {
		return fmt.Sprintf("%s ahead", off)
	}
	return fmt.Sprintf("%s behind", -off)
}

func clockCheck() check {
	return check{
		name: "clock", link: "docs/how-it-decides.md#what-survives-a-restart",
		remedy: "synchronise the hosts' clocks (NTP). taintlet decides nothing by them, but the times of its conditions and Events are wrong",
		ask: nodeQuestion{
			whether: "whether the hosts' clocks are right", ofAgents: true,
			found:   func(all *nodes) []string { return all.skewed },
			trouble: fmt.Sprintf("clocks of hosts differ from the API server's by more than %s", problems.MaxSkew),
			fine:    fmt.Sprintf("the hosts' clocks agree with the API server's to %s", problems.MaxSkew),
		}.ask,
	}
}

func kubeletCheck() check {
	return check{
		name: "kubelet", link: "docs/living-with-kubernetes.md#who-owns-a-taint",
		remedy: "compare the kubelet's thresholds (evictionHard) with taintlet's: the kubelet evicts where taintlet sees no trouble; for 5 minutes after the trouble that is as it should be",
		ask: nodeQuestion{
			whether: "whether the kubelets agree", ofAgents: true,
			found:   func(all *nodes) []string { return all.disagreeing },
			trouble: "conditions are bad for the kubelet and good for taintlet", fine: "no kubelet reports trouble that taintlet does not see",
		}.ask,
	}
}
