package ask

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// API makes a new connection to the API server, up to the end of the TLS handshake. Open
// connections prove nothing: client-go notices a dead one only after 45 s.
//
// A bare TCP connection would make each API server log an error for each, and would be answered by
// a load balancer with nothing behind it. The certificate is not verified, and none is shown:
// nothing is sent over the connection, and a host that can forge the answer can withhold it too.
type API struct {
	// address is where a server with a name was last reached. A failing nameserver is not the
	// server's fault.
	address map[string]netip.AddrPort
}

// Ask implements Check.
func (a *API) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	server := in.APIServer
	if server == "" {
		return verdict.Result{Detail: "no API server is known"}
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address, err := a.resolve(asking, server, patience/2)
	if err == nil {
		err = shakeHands(asking, address)
	}
	if err == nil {
		a.address = map[string]netip.AddrPort{server: address}
		return verdict.Result{Outcome: verdict.Well, Detail: "API server " + server + " answers"}
	}
	detail := "API server " + server + ": " + why(err)
	others := slices.DeleteFunc(slices.Clone(in.APIServers), func(other netip.AddrPort) bool { return other == address || other.String() == server })
	asking, cancelOthers := context.WithTimeout(ctx, patience)
	defer cancelOthers()
	errs := Together(others, func(other netip.AddrPort) error { return shakeHands(asking, other) })
	if i := slices.Index(errs, nil); i >= 0 {
		return verdict.Result{Outcome: verdict.Well, Elsewhere: true, Detail: detail + "; its own address " + others[i].String() + " answers"}
	}
	return verdict.Result{Outcome: verdict.Failed, Detail: detail}
}

// resolve returns the address of a server. A name is looked up.
func (a *API) resolve(ctx context.Context, server string, patience time.Duration) (netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	host, port, err := net.SplitHostPort(server)
	number, errOfPort := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err = cmp.Or(err, errOfPort); err != nil {
		return netip.AddrPort{}, err
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	switch before, known := a.address[server]; {
	case err == nil && len(addresses) > 0:
		return netip.AddrPortFrom(addresses[0].Unmap(), uint16(number)), nil
	case known:
		return before, nil
	}
	return netip.AddrPort{}, errors.Join(errors.New("its name is not resolved"), err)
}

// shakeHands makes a TLS connection and ends it.
func shakeHands(ctx context.Context, to netip.AddrPort) error {
	c, err := dial(ctx, to, true)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // nothing more was to be sent
	// No HTTP/2 is offered: a server would log that its preface is missing.
	// One key share, and not the one of 1.2 kB: nothing secret is sent.
	secure := tls.Client(c, &tls.Config{
		InsecureSkipVerify: true, // see API
		MinVersion:         tls.VersionTLS12,
		CurvePreferences:   []tls.CurveID{tls.X25519, tls.CurveP256},
	})
	return secure.HandshakeContext(ctx)
}
