package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// daemon is a network daemon of the node that tells its health on loopback.
type daemon struct {
	name   string
	port   uint16
	path   string
	header string
}

// daemons lists those that are known, by their documented ports. Which of them
// runs here shows by itself: only one that was well once can fail.
func daemons() []daemon {
	return []daemon{
		// Not /healthz, which is 503 while the Node is about to be deleted.
		{name: "kube-proxy", port: 10256, path: "/livez"},
		// With this header the agent does not count the cluster's other parts.
		{name: "Cilium", port: 9879, path: "/healthz", header: "brief: true\r\n"},
		{name: "Calico", port: 9099, path: "/readiness"},
	}
}

// seekEvery is in how many rounds daemons are looked for that were never well: a
// minute apart at the default period. Most hosts lack most of them for good.
const seekEvery = 12

// localCheck asks the node's network daemons for their health.
type localCheck struct {
	daemons []daemon
	well    reached[string] // was well since the start, by name
	rounds  int             // so far
}

func newLocalCheck() *localCheck { return &localCheck{daemons: daemons(), well: reached[string]{}} }

func (*localCheck) class() Class { return Local }

func (l *localCheck) check(ctx context.Context, patience time.Duration) Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := slices.Clone(l.daemons)
	if l.rounds%seekEvery != 0 {
		asked = slices.DeleteFunc(asked, func(d daemon) bool { return !l.well[d.name] })
	}
	l.rounds++
	errs := make([]error, len(asked))
	var group sync.WaitGroup
	for i, d := range asked {
		group.Go(func() { errs[i] = d.ask(ctx) })
	}
	group.Wait()
	var well, failed []string
	for i, d := range asked {
		switch {
		case errs[i] == nil:
			l.well[d.name] = true
			well = append(well, d.name+" is well")
		case l.well[d.name]:
			failed = append(failed, fmt.Sprintf("%s on port %d: %s", d.name, d.port, why(errs[i])))
		}
	}
	switch {
	case len(failed) > 0:
		return Result{Outcome: Failed, Detail: strings.Join(failed, "; ")}
	case len(well) > 0:
		return Result{Outcome: Well, Detail: strings.Join(well, ", ")}
	}
	return Result{Outcome: NotKnown, Detail: "no network daemon was seen well"}
}

// ask returns nil when the daemon says that it is well. On a host with IPv6 alone
// it may listen there alone.
func (d daemon) ask(ctx context.Context) error {
	r, err := get(ctx, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), d.port), d.path, d.header)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		r, err = get(ctx, netip.AddrPortFrom(netip.IPv6Loopback(), d.port), d.path, d.header)
	}
	switch r.status { // a long answer may be cut, so that there is an error too
	case http.StatusOK:
		return nil
	case 0:
		return err
	}
	return fmt.Errorf("%s: status %d", d.path, r.status)
}
