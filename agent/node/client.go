// Package node is where the agent's Node lives: its watch, the outbox with the writer
// behind it, the lookup of the admission policy, and the Nodes of dry runs.
package node

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Client reads and writes the Node: behind an API server (*apiserver.Client), in memory
// (*Memory), or either of them with the writes of a dry run laid over it (*Overlay).
type Client interface {
	// Watch sends every version of the Node, nil while there is none, until
	// the context ends.
	Watch(ctx context.Context, versions chan<- *taints.Node) error
	// Apply makes the Node carry what is desired and returns the newest version
	// seen, also with an error.
	Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error)
	// KeepPolicy reports whether the admission policy that keeps our pairs is there, and its
	// version where that is asked for.
	KeepPolicy(ctx context.Context, withVersion bool) (isPresent bool, version string, err error)
	// Announce writes a warning Event about the Node before it returns.
	Announce(ctx context.Context, node *taints.Node, reason, message string) error
}

// requestTimeout is how long the API server may take: a connection that hangs
// must not stop the writing for ever. A server that is only slow gets longer with
// each try.
const (
	requestTimeout    = 10 * time.Second
	maxRequestTimeout = 40 * time.Second
)
