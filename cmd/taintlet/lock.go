package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/serve"
	"github.com/taintlet/taintlet/taints/pace"
)

// lockName names the lock of a Node of a cluster: an abstract Unix socket (unix(7)) in the
// network namespace of the host, which all agents of a host share. The kernel frees it with
// the process that has it. The cluster is known by its certificate authority.
func lockName(node string, cluster *rest.Config) (string, error) {
	cluster = rest.CopyConfig(cluster)
	if err := rest.LoadTLSFiles(cluster); err != nil {
		return "", err
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", node, bytes.TrimSpace(cluster.CAData)))
	return fmt.Sprintf("@taintlet/%x", hash[:16]), nil // a name of a socket has at most 108 bytes
}

// lockAskedEvery is the time between two tries for a lock.
const lockAskedEvery = 250 * time.Millisecond

// otherRuns says why an agent waits. The record on the Node names the running agent.
const otherRuns = "another agent, or a process that holds its lock, runs for this Node; this one waits until it ends"

// lock returns when this agent has the lock of its Node, or nil when the context ends. The lock is
// free again when the returned listener is closed. While another agent has it, the log and /readyz
// say so.
func (o *options) lock(ctx context.Context, name string, log *slog.Logger) (net.Listener, error) {
	var config net.ListenConfig
	for isFirst := true; ; isFirst = false {
		lock, err := config.Listen(ctx, "unix", name)
		switch {
		case err == nil:
			return lock, nil
		case ctx.Err() != nil:
			return nil, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("the lock of the Node: %w", err)
		case isFirst:
			defer o.serveWaiting(ctx, log)()
		}
		pace.Sleep(ctx, lockAskedEvery)
	}
}

// serveWaiting serves the pages of an agent that waits, and returns a function that frees the port.
func (o *options) serveWaiting(ctx context.Context, log *slog.Logger) (stop func()) {
	log.Warn(otherRuns)
	if o.listen == "" {
		return func() {}
	}
	at, stop, err := serve.Wait(ctx, o.listen, otherRuns, log)
	if err != nil {
		log.Warn("the port is not served while this agent waits", "error", err)
		return func() {}
	}
	log.Info("this agent waits", "listen", at.String())
	return stop
}
