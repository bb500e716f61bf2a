package main

import (
	"context"
	"net"
	"strings"

	"github.com/taintlet/taintlet/test/cluster"
)

// handshakeTries is how many TLS connections are made to tell what one costs.
const handshakeTries = 3000

// handshakes measures what a TLS connection costs the API server: each agent makes
// one every minute (apiEvery).
func (r *run) handshakes(ctx context.Context) error {
	server := strings.TrimPrefix(r.cluster.URL(), "https://")
	c, err := r.during(ctx, func() error {
		for range handshakeTries {
			shakeHands(ctx, new(net.Dialer), server)
		}
		return ctx.Err()
	})
	if idle := r.f.Idle; err == nil && idle.Seconds > 0 {
		r.f.Handshake = 1000 * (c.Cores[cluster.APIServer] - idle.Cores[cluster.APIServer]) * c.Seconds / handshakeTries
	}
	return err
}
