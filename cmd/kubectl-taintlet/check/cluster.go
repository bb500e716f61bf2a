package check

import (
	"context"
	"errors"
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
