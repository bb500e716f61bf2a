package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

// takeLock takes a lock if it is free, and tells all who ask the name of its owner. It is free
// again when the returned listener is closed. nil: another process has it.
func takeLock(ctx context.Context, name, owner string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the lock of the Node: %w", err)
	}
	go func() { // until the listener is closed
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, owner) // which fits into the buffer of the socket
			conn.Close()              //nolint:errcheck // nobody is left to be told
		}
	}()
	return listener, nil
}

const (
	// lockAskedEvery is the time between two tries for a lock, and saysWithin is how long its
	// owner may take to say who it is.
	lockAskedEvery, saysWithin = 250 * time.Millisecond, time.Second
	// maxOwner is how much is read of the name of an owner, in bytes.
	maxOwner = 100
)

// ownerOf asks the process that has a lock who it is; empty: it does not say. The error is that
// nobody has the lock.
func ownerOf(ctx context.Context, name string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", name)
	if err != nil {
		return "", err
	}
	defer conn.Close()                               //nolint:errcheck // nothing was written
	conn.SetReadDeadline(time.Now().Add(saysWithin)) //nolint:errcheck // then it is not known
	owner, _, _ := bufio.NewReader(io.LimitReader(conn, maxOwner)).ReadLine()
	return string(owner), nil
}

// lock returns when this agent has the lock of its Node, or nil when the context ends. While
// another one has it, the log and /readyz say so.
func (o *options) lock(ctx context.Context, name, instance string, log *slog.Logger) (net.Listener, error) {
	var waiting *serve.Waiting // nil: the port is not served
	defer func() {
		if waiting != nil {
			waiting.Stop()
		}
	}()
	for told := ""; ; {
		lock, err := takeLock(ctx, name, instance)
		if lock != nil || err != nil || ctx.Err() != nil {
			return lock, err
		}
		owner, err := ownerOf(ctx, name)
		if why := fmt.Sprintf("another agent, %q, runs for this Node; this one waits until it ends", owner); err == nil && why != told {
			told = why
			log.Warn(why)
			switch {
			case waiting != nil:
				waiting.Say(why)
			case o.listen != "":
				if waiting, err = serve.Wait(ctx, o.listen, why, log); err != nil {
					log.Warn("the port is not served while this agent waits", "error", err)
				} else {
					log.Info("this agent waits", "listen", waiting.Address.String())
				}
			}
		}
		pace.Sleep(ctx, lockAskedEvery)
	}
}
