package serve

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
)

// Waiting serves /healthz and /readyz of an agent that does not run yet.
type Waiting struct {
	// Address is where.
	Address net.Addr

	health Health
	stop   context.CancelFunc
	done   chan struct{}
}

// Wait serves at the address until Stop, or until the context ends. /readyz answers with why.
func Wait(ctx context.Context, address, why string, log *slog.Logger) (*Waiting, error) {
	listener, err := Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Waiting{Address: listener.Addr(), stop: stop, done: make(chan struct{})}
	w.health.SetReady(why)
	server := &Server{Listener: listener, Health: &w.health, Fleet: fleet.Alone(), Now: time.Now, Log: log}
	go func() {
		defer close(w.done)
		server.serve(ctx, server.healthPages()) //nolint:errcheck // it ends with the context
	}()
	return w, nil
}

// Stop frees the address.
func (w *Waiting) Stop() {
	w.stop()
	<-w.done
}
