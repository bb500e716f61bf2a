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

// maxWaiting bounds the connections of those that wait for a lock.
const maxWaiting = 16

// takeLock takes a lock if it is free, and tells all who wait for it the name of its owner.
// It is free again when the returned listener is closed. nil: another process has it.
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
		var waiting []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			if waiting = append(waiting, conn); len(waiting) > maxWaiting {
				waiting[0].Close() //nolint:errcheck // it asks again
				waiting = waiting[1:]
			}
			fmt.Fprintln(conn, owner)
		}
		for _, conn := range waiting {
			conn.Close() //nolint:errcheck // it ends with this process in any case
		}
	}()
	return listener, nil
}

const (
	// lockAskedEvery is the least time between two tries for a lock, and saysWithin is how
	// long its owner may take to say who it is.
	lockAskedEvery, saysWithin = 100 * time.Millisecond, time.Second
	// maxOwner is how much is read of the name of an owner, in bytes.
	maxOwner = 100
)

// awaitLock returns when the process that has a lock has freed it, or closes the connection.
// It tells whose the lock is; empty: the owner does not say.
func awaitLock(ctx context.Context, name string, tell func(owner string)) {
	asked := time.After(lockAskedEvery)
	var dialer net.Dialer
	if conn, err := dialer.DialContext(ctx, "unix", name); err == nil {
		stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // nobody is left to be told
		defer stop()
		conn.SetReadDeadline(time.Now().Add(saysWithin)) //nolint:errcheck // then it is not known
		owner, _, _ := bufio.NewReader(io.LimitReader(conn, maxOwner)).ReadLine()
		tell(string(owner))
		conn.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
		io.Copy(io.Discard, conn)         //nolint:errcheck // any end is one
		conn.Close()                      //nolint:errcheck // as above
	}
	select {
	case <-asked:
	case <-ctx.Done():
	}
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
	for {
		lock, err := takeLock(ctx, name, instance)
		if lock != nil || err != nil || ctx.Err() != nil {
			return lock, err
		}
		awaitLock(ctx, name, func(owner string) {
			why := fmt.Sprintf("another agent, %q, runs for this Node; this one waits until it ends", owner)
			log.Warn(why)
			switch {
			case waiting != nil:
				waiting.Say(why)
			case o.listen != "":
				if waiting, err = serve.Wait(ctx, o.listen, why, log); err != nil {
					log.Warn("the port is not served while this agent waits", "error", err)
					return
				}
				log.Info("this agent waits", "listen", waiting.Address.String())
			}
		})
	}
}
