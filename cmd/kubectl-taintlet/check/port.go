package check

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DefaultPort is the port of the host where the agents of the chart and of
// deploy/taintlet.yaml listen. docs/decisions.md says why it is this one.
const DefaultPort = 4808

// hostPods is a page of pods, with their ports.
type hostPods struct {
	Metadata struct{ Continue string }
	Items    []hostPod
}

type hostPod struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		NodeName                   string
		HostNetwork                bool
		Containers, InitContainers []portContainer
	}
}

type portContainer struct {
	RestartPolicy string // of an init container that goes on beside the others: Always
	Ports         []struct {
		ContainerPort, HostPort int
		Protocol                string
	}
}

// declares says that the pod takes the TCP port of its host. The scheduler goes by
// the same: it counts neither other protocols nor init containers that end (HostPorts
// in k8s.io/component-helpers/scheduling).
func (p hostPod) declares(port int) bool {
	containers := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy == "Always" {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, declared := range c.Ports {
			isOnHost := declared.HostPort == port || p.Spec.HostNetwork && declared.ContainerPort == port
			if isOnHost && (declared.Protocol == "" || declared.Protocol == "TCP") {
				return true
			}
		}
	}
	return false
}

// isAgent says that the pod is one of ours.
func (p hostPod) isAgent(namespace string) bool {
	key, value, _ := strings.Cut(label, "=")
	return p.Metadata.Namespace == namespace && p.Metadata.Labels[key] == value
}

// name is the pod's with its Node's.
func (p hostPod) name() string {
	name := p.Metadata.Namespace + "/" + p.Metadata.Name
	if p.Spec.NodeName == "" {
		return name + " (on no Node yet)"
	}
	return fmt.Sprintf("%s (%s)", name, p.Spec.NodeName)
}

// portCheck finds pods that take the agents' port of their host. There the agents stay
// Pending, or keep such a pod from being scheduled. A program that listens without
// being declared is not found: no API knows of it.
func portCheck() check {
	return check{
		name: "port", link: "deploy/README.md#tune",
		remedy: "choose a port that is free on all hosts: port in the chart's values; in deploy/taintlet.yaml --listen, containerPort and the Service. Then ask with --port",
		ask: func(ctx context.Context, s *scene) answer {
			taken, err := s.podsWithPort(ctx)
			switch {
			case err != nil:
				return skip("whether port %d of the hosts is free: the pods cannot be listed: %v", s.port, err)
			case len(taken) > 0:
				return fail("pods declare port %d of their hosts: %s", s.port, listed(taken))
			}
			return ok("no pod declares port %d of its host", s.port)
		},
	}
}

// podsWithPort returns the pods that take the port of their host, without the agents'.
func (s *scene) podsWithPort(ctx context.Context) (taken []string, err error) {
	const page = 500
	query := url.Values{"limit": {strconv.Itoa(page)}, "fieldSelector": {"status.phase!=Succeeded,status.phase!=Failed"}}
	for {
		var pods hostPods
		if err := s.me.listed(ctx, "/api/v1/pods", query, &pods); err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			if pod.declares(s.port) && !pod.isAgent(s.namespace) {
				taken = append(taken, pod.name())
			}
		}
		if pods.Metadata.Continue == "" {
			slices.Sort(taken)
			return taken, nil
		}
		query.Set("continue", pods.Metadata.Continue)
	}
}
