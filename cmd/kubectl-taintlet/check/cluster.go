package check

import (
	"context"
	"slices"
)

const (
	// oldest is the oldest minor version of Kubernetes that taintlet works with.
	oldest = 30
	// keeping is the first that has what deploy/keep.yaml needs.
	keeping = 36
)

func versionCheck() check {
	return check{
		name:   "version",
		remedy: "taintlet needs Kubernetes 1.30 or later, and an API server that answers",
		link:   "deploy/README.md#deploying-taintlet",
		ask: func(ctx context.Context, s *scene) answer {
			if err := s.me.get(ctx, "/version", &s.version); err != nil {
				return fail("the API server does not say its version: %v", err)
			}
			if minor := s.version.number(); minor < oldest {
				return fail("Kubernetes is %s, older than 1.%d", s.version.GitVersion, oldest)
			}
			return ok("Kubernetes is %s, 1.%d or later", s.version.GitVersion, oldest)
		},
	}
}

func nodesCheck() check {
	return check{
		name:   "nodes",
		remedy: "use an account that may list nodes",
		link:   "deploy/README.md#permissions",
		ask: func(ctx context.Context, s *scene) answer {
			all, err := s.allNodes(ctx)
			if err != nil {
				return fail("the Nodes cannot be listed: %v", err)
			}
			return ok("the Nodes can be listed: %d", len(all.names))
		},
	}
}

// pods are the agents'.
type pods struct {
	Items []struct {
		Metadata struct{ Name, UID string }
		Spec     struct {
			NodeName   string
			Containers []struct{ Name, Image string }
		}
	}
}

// agentPods returns the agents' pods.
func (s *scene) agentPods(ctx context.Context) (pods, error) {
	return s.pods.once(func() (list pods, err error) {
		err = s.me.selected(ctx, "/api/v1/namespaces/"+s.namespace+"/pods", label, &list)
		return list, err
	})
}

func imagesCheck() check {
	return check{
		name:   "images",
		remedy: "wait for the roll-out, or find out which pods it does not replace",
		link:   "deploy/README.md#upgrade",
		ask: func(ctx context.Context, s *scene) answer {
			list, err := s.agentPods(ctx)
			if err != nil {
				return fail("the agents' pods cannot be listed: %v", err)
			}
			var images []string
			for _, pod := range list.Items {
				for _, container := range pod.Spec.Containers {
					if container.Name == account && !slices.Contains(images, container.Image) {
						images = append(images, container.Image)
					}
				}
			}
			switch len(images) {
			case 0:
				return fail("there are no agents' pods in namespace %s", s.namespace)
			case 1:
				return ok("all agents are of the same version: %s", images[0])
			}
			slices.Sort(images)
			return warn("agents are of %d versions: %s", len(images), listed(images))
		},
	}
}
