package ask

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Route asks the kernel by which interface packets leave, and reads that
// interface's carrier. One way to the outside is enough, IPv4 or IPv6.
type Route struct {
	host probes.Host
	// seen has the targets that were led to since the start. Only they can be lost.
	seen reached[string]
	// call asks. It may hang: on some kernels a route is looked up, and carrier
	// read, under the rtnl lock, which a driver in trouble may hold for long.
	call hostfile.SoleCall[[]way]
}

// way is what the kernel says about one target.
type way struct {
	target string
	// by is the interface, with carrier.
	by string
	// lost says why the target is not led to: no route, or no carrier.
	lost string
	// err says why it is not known.
	err error
}

// NewRoute returns the class that asks the kernel, and reads
// class/net/<interface>/carrier in h.Sys.
func NewRoute(h probes.Host) *Route {
	return &Route{host: h, seen: reached[string]{}}
}

// Forget makes the class as new: nothing was healthy, nobody was reached.
func (r *Route) Forget() { r.seen = reached[string]{} }

// Ask implements Check.
func (r *Route) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	host, api := r.host, addressOf(in.APIServer)
	r.call.Start(func() []way { return ways(host, api) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, ok := r.call.Wait(ctx)
	if !ok {
		return verdict.Result{Outcome: verdict.NotKnown, Detail: fmt.Sprintf("asking for routes and reading carrier: no answer for %s", r.call.OutFor())}
	}
	return r.evaluate(found)
}

// evaluate says what the ways mean. A target that was never led to since the start
// may be how this host is meant to be.
func (r *Route) evaluate(found []way) verdict.Result {
	var well, lost, rest []string
	targets := make([]string, len(found))
	for i, w := range found {
		targets[i] = w.target
		switch {
		case w.err != nil:
			rest = append(rest, w.err.Error())
		case w.lost == "":
			r.seen[w.target] = true
			well = append(well, w.target+" by "+w.by+" with carrier")
		case r.seen[w.target]:
			lost = append(lost, w.lost)
		default:
			rest = append(rest, w.lost+", and none seen since the start")
		}
	}
	r.seen.keep(targets)
	switch {
	case len(lost) > 0:
		return verdict.Result{Outcome: verdict.Failed, Detail: strings.Join(lost, "; ")}
	case len(well) > 0:
		return verdict.Result{Outcome: verdict.Well, Detail: strings.Join(well, "; ")}
	}
	return verdict.Result{Outcome: verdict.NotKnown, Detail: strings.Join(rest, "; ")}
}

// ways asks the kernel about the outside, and about the API server unless that
// is on this host.
func ways(h probes.Host, api netip.Addr) []way {
	k, err := openKernel()
	if err != nil {
		return []way{{target: outside, err: err}}
	}
	defer k.close()
	found := []way{k.outside(h)}
	if !api.IsValid() {
		return found
	}
	if w, _ := k.wayTo(h, api); w != (way{}) {
		w.target = "API server " + api.String()
		found = append(found, w)
	}
	return found
}

// outside is the target that stands for all addresses that nothing but a default
// route leads to.
const outside = "default route"

// outside looks for a way to addresses that are nobody's (RFC 5737, RFC 3849).
// Which of several next hops the kernel takes depends on the address. With two of
// the same weight, all of these addresses get the same one once in 2^63.
func (k *kernel) outside(h probes.Host) way {
	v4 := k.anyOf(h, netip.AddrFrom4([4]byte{192, 0, 2, 1}), 64)
	if v4.by != "" {
		return v4
	}
	v6 := k.anyOf(h, netip.MustParseAddr("2001:db8::1"), 64)
	if v6.by != "" {
		return v6
	}
	return way{target: outside, lost: v4.lost + ", " + v6.lost, err: errors.Join(v4.err, v6.err)}
}

// anyOf returns the first way of so many addresses that is there, or that of the
// first address. It stops at an address without a route: the others have none.
func (k *kernel) anyOf(h probes.Host, to netip.Addr, addresses int) (first way) {
	for i := range addresses {
		w, routed := k.wayTo(h, to)
		w.target = outside
		if w.by != "" {
			return w
		}
		if i == 0 {
			first = w
		}
		if !routed {
			break
		}
		to = to.Next()
	}
	return first
}

// wayTo asks about one address. routed says that the kernel has a route to it.
// The zero way: the address is this host's own.
func (k *kernel) wayTo(h probes.Host, to netip.Addr) (w way, routed bool) {
	name, err := k.interfaceTo(to)
	switch {
	case errors.Is(err, errNowhere):
		return way{lost: fmt.Sprintf("no route to %s (%s)", to, why(err))}, false
	case err != nil:
		return way{err: err}, true
	case name == "":
		return way{}, true
	}
	carrier, err := readCarrier(h, name)
	switch {
	case err != nil:
		return way{err: err}, true
	case !carrier:
		return way{lost: fmt.Sprintf("no carrier on %s, the way to %s", name, to)}, true
	}
	return way{by: name}, true
}

// addressOf returns the address of "address:port"; the zero Addr for a name.
func addressOf(hostPort string) netip.Addr {
	target, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	return target.Addr().Unmap().WithZone("")
}
