package deploy

import (
	"net"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
)

// Wherever the agent listens, the kubelet's probes reach it, on hosts with IPv4
// and with IPv6.
func TestProbesReachTheAgent(t *testing.T) {
	for values, want := range map[string]map[string]string{ // by the host's address
		"listen=all":      {"192.0.2.1": "", "2001:db8::1": ""},
		"listen=host":     {"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1"},
		"listen=loopback": {"192.0.2.1": "127.0.0.1", "2001:db8::1": "127.0.0.1"},
	} {
		set := &appsv1.DaemonSet{}
		decodeFirst(t, bed.Render(t, "--set", values, "--show-only", "templates/daemonset.yaml"), set)
		agent := set.Spec.Template.Spec.Containers[0]
		for hostIP, wanted := range want {
			address, port, err := net.SplitHostPort(listenOf(t, agent, hostIP))
			if err != nil || address != wanted || port != "4808" {
				t.Errorf("%s on %s: it listens on %q, port %s: %v", values, hostIP, address, port, err)
			}
			for _, probe := range []*corev1.Probe{agent.LivenessProbe, agent.ReadinessProbe} {
				host := probe.HTTPGet.Host
				if host == "" {
					host = hostIP // the pod's address, which is the host's
				}
				if address != "" && host != address || host == hostIP && values != "listen=host" {
					t.Errorf("%s on %s: it listens on %q, and is probed on %s", values, hostIP, address, host)
				}
			}
		}
	}
}

// listenOf is the value of --listen as the kubelet expands it.
func listenOf(t *testing.T, agent corev1.Container, hostIP string) string {
	t.Helper()
	i := slices.IndexFunc(agent.Args, func(arg string) bool { return strings.HasPrefix(arg, "--listen=") })
	if i < 0 {
		t.Fatalf("no --listen in %q", agent.Args)
	}
	value := strings.TrimPrefix(agent.Args[i], "--listen=")
	for _, variable := range agent.Env {
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "status.hostIP" {
			value = strings.ReplaceAll(value, "$("+variable.Name+")", hostIP)
		}
	}
	return value
}
