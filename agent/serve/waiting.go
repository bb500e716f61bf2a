package serve

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
)

// Wait serves /healthz and /readyz of an agent that does not run yet, until stop is called or the
// context ends. /readyz answers with why.
func Wait(ctx context.Context, address, why string, log *slog.Logger) (at net.Addr, stop func(), err error) {
	listener, err := Listen(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	health, ended := &Health{}, make(chan struct{})
	health.SetReady(why)
	server := &Server{Listener: listener, Health: health, Fleet: fleet.Alone(), Now: time.Now, Log: log}
	go func() {
		defer close(ended)
		server.serve(ctx, server.healthPages()) //nolint:errcheck // it ends with the context
	}()
	return listener.Addr(), func() {
		cancel()
		<-ended
	}, nil
}
