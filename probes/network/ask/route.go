package ask

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Route asks the kernel where packets leave, and for carrier. One way out is enough, IPv4 or IPv6.
type Route struct {
	host probes.Host
	// seen has the targets that were led to, by the interface that led there. Only they can be lost.
	seen map[string]string
	// call asks. It may hang: on some kernels a route is looked up, and carrier
	// read, under the rtnl lock, which a driver in trouble may hold for long.
	call hostfile.SoleCall[[]way]
}

// way is what the kernel says about one target.
type way struct {
	target string
	// by is the interface, with carrier.
	by string
	// lost says why the target is not led to: no route, or no carrier, which isDown says.
	lost   string
	isDown bool
	// err says why it is not known.
	err error
}

// outside is the target that stands for all addresses that nothing but a default route leads to.
const outside = "default route"

// NewRoute returns the class that reads class/net/<interface>/carrier in h.Sys.
func NewRoute(h probes.Host) *Route {
	return &Route{host: h, seen: map[string]string{}}
}

// Ask implements Check.
func (r *Route) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	host, server, before := r.host, in.APIServer, r.seen[outside]
	r.call.Start(func() []way { return ways(host, server, before) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, ok := r.call.Wait(ctx)
	if !ok {
		return verdict.Result{Detail: fmt.Sprintf("asking for routes and reading carrier: no answer for %s", r.call.Silence().Round(100*time.Millisecond))}
	}
	return r.evaluate(found)
}

// evaluate judges the ways that were found. A destination that never had a route may be intended on
// this host.
func (r *Route) evaluate(found []way) verdict.Result {
	var well, lost, rest []string
	isDown, never, seen := false, true, map[string]string{}
	for _, w := range found {
		before, wasSeen := r.seen[w.target]
		if wasSeen {
			seen[w.target] = before
		}
		isDown = isDown || w.isDown
		switch {
		case w.err != nil:
			rest = append(rest, w.err.Error())
			never = never && !wasSeen && errors.Is(w.err, errNoneFound)
		case w.lost == "":
			seen[w.target] = w.by
			well = append(well, w.target+" by "+w.by+" with carrier")
		case wasSeen:
			lost = append(lost, w.lost)
		default:
			rest = append(rest, w.lost+", and none seen since the start")
		}
	}
	r.seen = seen
	switch {
	case len(lost) > 0:
		return verdict.Result{Outcome: verdict.Failed, IsSure: isDown || len(lost) > 1, Detail: strings.Join(lost, "; ")}
	case len(well) > 0:
		return verdict.Result{Outcome: verdict.Well, Detail: strings.Join(well, "; ")}
	}
	return verdict.Result{Never: never, IsSure: isDown, Detail: strings.Join(rest, "; ")}
}

// ways asks the kernel about the outside, and about the API server unless that
// is on this host, or is known by its name. before is the interface that led to the outside.
func ways(h probes.Host, server, before string) []way {
	k, err := openKernel()
	if err != nil {
		return []way{{target: outside, err: err}}
	}
	defer k.close()
	w := k.outside(h)
	w.target = outside
	if w.lost != "" && !w.isDown && before != "" { // a route may go with the carrier
		if carrier, err := readCarrier(h, before); err == nil && !carrier {
			w.isDown, w.lost = true, fmt.Sprintf("%s, and no carrier on %s, which led there", w.lost, before)
		}
	}
	found := []way{w}
	if target, err := netip.ParseAddrPort(server); err == nil {
		api := target.Addr().Unmap().WithZone("")
		hops, err := k.routeTo(api)
		if w := k.wayOf(h, hops, err, "no route to "+api.String(), "the way to "+api.String()); w != (way{}) {
			w.target = "API server " + api.String()
			found = append(found, w)
		}
	}
	return found
}

// outside looks for the default route of IPv4, or else of IPv6.
func (k *kernel) outside(h probes.Host) way {
	v4 := k.defaultRoute(h, "IPv4")
	if v4.by != "" {
		return v4
	}
	v6 := k.defaultRoute(h, "IPv6")
	switch {
	case v6.by != "" || v6.isDown && !v4.isDown:
		return v6
	case v4.isDown:
		return v4
	case v4.err != nil || v6.err != nil:
		return way{err: errors.Join(v4.err, v6.err)}
	}
	return way{lost: fmt.Sprintf("no default route (%s, %s)", v4.lost, v6.lost)}
}

// outsideTries is how many addresses the kernel is asked. Networks discard some, such as
// those that nobody has: a discard route is no loss of the default route.
const outsideTries = 8

// errNoneFound: the kernel has a more exact route for each address that was tried.
var errNoneFound = errors.New("no address found that only a default route leads to")

// anyAddress returns a random address below multicast, or of 2000::/3, and how long the prefix of a
// route may be that stands for a default route: VPNs have one for each half of IPv4, and routers
// one of all global addresses of IPv6.
func anyAddress(family string) (netip.Addr, byte) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], rand.Uint64())
	if family == "IPv6" {
		b[0] = 0x20 | b[0]&0x1f
		return netip.AddrFrom16(b), 3
	}
	return netip.AddrFrom4([4]byte{1 + b[0]%223, b[1], b[2], b[3]}), 1
}

// defaultRoute returns the way of the default route of a family. No packet is sent.
func (k *kernel) defaultRoute(h probes.Host, family string) (w way) {
	for range outsideTries {
		address, most := anyAddress(family)
		found, err := k.routeTo(address)
		switch {
		case err == nil && found.interfaces == nil: // 127.0.0.0/8
		case err == nil && found.bits <= most:
			return k.wayOf(h, found, nil, "", "which has the default route")
		case err == nil: // a route to a part of all
		case !errors.Is(err, errNowhere):
			return way{err: err}
		case w.lost == "":
			w.lost = family + ": " + why(err)
		}
	}
	if w.lost == "" {
		w.err = fmt.Errorf("%s: %w", family, errNoneFound)
	}
	return w
}

// wayOf says what a route means, or why there is none. One next hop with carrier is enough.
// The zero way: the address is this host's own.
func (k *kernel) wayOf(h probes.Host, r route, err error, nowhere, purpose string) (w way) {
	if errors.Is(err, errNowhere) {
		return way{lost: fmt.Sprintf("%s (%s)", nowhere, why(err))}
	}
	w.err = err
	for _, index := range r.interfaces {
		name, err := k.name(index)
		carrier := false
		if err == nil {
			carrier, err = readCarrier(h, name)
		}
		switch {
		case err != nil:
			w.err = err
		case carrier:
			return way{by: name}
		case w.lost == "":
			w.isDown, w.lost = true, fmt.Sprintf("no carrier on %s, %s", name, purpose)
		}
	}
	return w
}
