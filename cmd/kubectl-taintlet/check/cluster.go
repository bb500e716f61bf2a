package check

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// oldest is the oldest minor version of Kubernetes that taintlet works with.
const oldest = 30

func (s *scene) checkVersion(_ context.Context) answer {
	if s.versionErr != nil {
		return fail("the API server does not say its version: %v", s.versionErr)
	}
	if minor := minorOf(s.version); minor < oldest {
		return fail("Kubernetes is %s, older than 1.%d", s.version.GitVersion, oldest)
	}
	return ok("Kubernetes is %s, 1.%d or later", s.version.GitVersion, oldest)
}

func (s *scene) checkNodes(ctx context.Context) answer {
	all, err := s.allNodes(ctx)
	switch {
	case errors.Is(err, errNoNodes):
		return fail("%v", err).but("add a Node first: most of what follows is tried on one")
	case err != nil:
		return fail("the Nodes cannot be listed: %v", err)
	}
	return ok("the Nodes can be listed: %d", len(all.names))
}

func (s *scene) checkImages(ctx context.Context) answer {
	images, err := s.images(ctx)
	if err != nil {
		return unread("the agents' pods", err)
	}
	switch len(images) {
	case 0:
		return fail("there are no agents' pods in namespace %s", s.namespace).but("see what the DaemonSet says: kubectl --namespace " + s.namespace + " describe daemonset " + account)
	case 1:
		return ok("all agents are of the same version: %s", images[0])
	}
	return warn("agents are of %d versions: %s", len(images), terminal.Listed(images))
}

// images returns the images of the agents, each once.
func (s *scene) images(ctx context.Context) (images []string, err error) {
	list, err := s.agentPods(ctx)
	for _, pod := range list {
		if image := installation.Agent(&pod.Spec).Image; image != "" && !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	slices.Sort(images)
	return images, err
}

// checkProgram compares the release of the agents with that of this program, which
// knows the configuration and the record of its own release.
func (s *scene) checkProgram(ctx context.Context) answer {
	own := installation.ReleaseOf(s.program)
	if own == "" {
		return skip("whether this program is of the agents' release: it is %s, which is none", cmp.Or(s.program, "of no version"))
	}
	images, err := s.images(ctx)
	if err != nil || len(images) == 0 {
		return skip("whether this program is of the agents' release: there are no agents to compare it with")
	}
	for _, image := range images {
		switch theirs := installation.ReleaseOf(image); theirs {
		case own:
		case "":
			return skip("whether this program is of the agents' release: the image %s names none", image)
		default:
			return warn("this program is of release %s, and agents are of %s", own, theirs)
		}
	}
	return ok("this program and the agents are of one release: %s", own)
}
