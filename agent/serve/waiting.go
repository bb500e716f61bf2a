package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/taintlet/taintlet/agent/fleet"
)

// Waiting serves /healthz and /readyz of an agent that does not run yet. nil serves nothing.
type Waiting struct {
	// Address is where.
	Address net.Addr

	why  atomic.Value
	stop context.CancelFunc
	done chan struct{}
}

// Wait serves at the address until Stop, or until the context ends.
func Wait(ctx context.Context, address string, log *slog.Logger) (*Waiting, error) {
	listener, err := Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Waiting{Address: listener.Addr(), stop: stop, done: make(chan struct{})}
	w.Say("the agent does not run yet")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { answer(rw, nil) })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		answer(rw, errors.New("not ready: "+w.why.Load().(string))) //nolint:forcetypeassert // Say stores strings
	})
	server := &Server{Listener: listener, Fleet: fleet.Alone(), Log: log}
	go func() {
		defer close(w.done)
		server.serve(ctx, mux) //nolint:errcheck // it ends with the context
	}()
	return w, nil
}

// Say sets what /readyz answers.
func (w *Waiting) Say(why string) {
	if w != nil {
		w.why.Store(why)
	}
}

// Stop frees the address.
func (w *Waiting) Stop() {
	if w != nil {
		w.stop()
		<-w.done
	}
}
