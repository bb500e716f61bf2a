package apiserver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// endpointTimeout is how long a connection to an endpoint may take.
	endpointTimeout = 2 * time.Second
	// backAfter is how long the configured address must answer again before the connections to
	// endpoints are closed, so that their requests go back.
	backAfter = time.Minute
)

// dialFunc makes a connection, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// detour dials the API server at its configured address, which is mostly that of a Service, and
// at its endpoints while that fails. A host whose default route or kube-proxy is broken may
// reach those alone. What is dialed changes nothing in TLS: the server must have a certificate
// for the name that is configured before it gets a token.
type detour struct {
	dial       dialFunc
	configured string // host and port

	mu        sync.Mutex
	endpoints []netip.AddrPort
	// isAvoided: the endpoints are dialed first. goodSince is since when nothing says that the
	// configured address fails; zero: it does.
	isAvoided bool
	goodSince time.Time
	// open are the connections to endpoints.
	open map[*detoured]bool
}

// detoured is a connection to an endpoint.
type detoured struct {
	net.Conn
	by *detour
}

// Close ends the connection.
func (c *detoured) Close() error {
	c.by.mu.Lock()
	delete(c.by.open, c)
	c.by.mu.Unlock()
	return c.Conn.Close()
}

// DialContext is that of net.Dialer.
func (d *detour) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	endpoints, isAvoided := d.endpoints, d.isAvoided
	d.mu.Unlock()
	if address != d.configured || len(endpoints) == 0 { // such as a proxy
		return d.dial(ctx, network, address)
	}
	var errs []error
	if !isAvoided {
		c, err := d.dial(ctx, network, address)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	for _, endpoint := range endpoints {
		c, err := d.dialEndpoint(ctx, network, endpoint)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	if isAvoided {
		return d.dial(ctx, network, address)
	}
	return nil, errors.Join(errs...)
}

func (d *detour) dialEndpoint(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	c, err := d.dial(ctx, network, to.String())
	if err != nil {
		return nil, err
	}
	own := &detoured{c, d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[own] = true
	return own, nil
}

// observe takes in whether the endpoints answer and the configured address does not.
func (d *detour) observe(elsewhere bool) {
	d.mu.Lock()
	var ended []*detoured
	switch now := time.Now(); {
	case elsewhere:
		d.isAvoided, d.goodSince = true, time.Time{}
	case d.goodSince.IsZero():
		d.goodSince = now
	case now.Sub(d.goodSince) >= backAfter:
		d.isAvoided, d.goodSince = false, now
		for c := range d.open {
			ended = append(ended, c)
		}
	}
	d.mu.Unlock()
	for _, c := range ended {
		_ = c.Close() // its requests are tried again
	}
}

// Address is the configured host and port of the API server; empty if the configuration is not
// valid.
func (c *Client) Address() string { return c.detour.configured }

// SetEndpoints sets where the API server is dialed while its configured address fails, the
// preferred one first.
func (c *Client) SetEndpoints(endpoints []netip.AddrPort) {
	c.detour.mu.Lock()
	defer c.detour.mu.Unlock()
	c.detour.endpoints = endpoints
}

// ObserveWay takes in the state of the way to the API server. isBroken: the kept connection may be
// dead, because this host has lost a route. elsewhere: the endpoints answer, and the configured
// address does not.
func (c *Client) ObserveWay(isBroken, elsewhere bool) {
	c.detour.observe(elsewhere)
	if isBroken || elsewhere {
		c.failedAt.Store(new(time.Now()))
	}
}
