package ask

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// daemon is a network daemon of the node that tells its health on loopback.
type daemon struct {
	name   string
	port   uint16
	path   string
	header string
}

// daemons lists those that are known, by their documented ports. Only one healthy once can fail.
func daemons() []daemon {
	return []daemon{
		// Not /healthz, which is 503 while the Node is about to be deleted.
		{name: "kube-proxy", port: 10256, path: "/livez"},
		// With this header the agent does not count the cluster's other parts.
		{name: "Cilium", port: 9879, path: "/healthz", header: "brief: true\r\n"},
		{name: "Calico", port: 9099, path: "/readiness"},
	}
}

// seekEvery is in how many rounds daemons are looked for that were never well: a minute apart.
const seekEvery = 12

// Local asks the node's network daemons for their health.
type Local struct {
	daemons []daemon
	known   map[string]seenDaemon // by name
	rounds  int                   // so far
}

// seenDaemon is what a daemon has been since the start.
type seenDaemon struct {
	well bool // once
	// ill counts the bad and the missing answers since the last good one.
	ill int
	// closed: the port was closed when last tried. backAt is when it was open again.
	closed bool
	backAt time.Time
}

// backWithin is for how long a daemon that came back counts as crashing: the kubelet
// waits 5 min at most before it starts a container again.
const backWithin = 10 * time.Minute

// illAnswers in a row show that a daemon was ill before its port closed. Two may come of its end.
const illAnswers = 3

// next takes in an answer.
func (s seenDaemon) next(err error, now time.Time) seenDaemon {
	closed := isClosed(err)
	if s.closed && !closed && s.well {
		s.backAt = now
	}
	s.closed = closed
	switch {
	case err == nil:
		s.well, s.ill = true, 0
	case !closed && (s.well || !isAbsent(err)):
		s.ill++
	}
	return s
}

// isFailing reports whether a daemon fails that should work. A closed port alone means that the daemon
// was removed. A daemon that crashes opens its port now and then. A daemon that failed before its port
// closed is still failing.
func (s seenDaemon) isFailing(now time.Time) bool {
	if !s.closed {
		return s.ill > 0
	}
	return s.ill >= illAnswers || !s.backAt.IsZero() && now.Sub(s.backAt) < backWithin
}

// NewLocal returns the class that asks the node's network daemons.
func NewLocal() *Local {
	return &Local{daemons: daemons(), known: map[string]seenDaemon{}}
}

// Ask implements Check.
func (l *Local) Ask(ctx context.Context, _ *verdict.Surroundings, patience time.Duration) verdict.Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := slices.Clone(l.daemons)
	if l.rounds%seekEvery != 0 {
		asked = slices.DeleteFunc(asked, func(d daemon) bool { known := l.known[d.name]; return !known.well && known.ill == 0 })
	}
	l.rounds++
	errs := Together(asked, func(d daemon) error { return d.ask(ctx) })
	return l.evaluate(asked, errs, time.Now())
}

// evaluate says what the answers mean. One failing daemon is enough. A daemon that is
// there and was never well is stuck or starting, so nothing is known.
func (l *Local) evaluate(asked []daemon, errs []error, now time.Time) verdict.Result {
	var well, failed, ill []string
	for i, d := range asked {
		known := l.known[d.name].next(errs[i], now)
		l.known[d.name] = known
		switch isFailing := known.isFailing(now); {
		case errs[i] == nil:
			well = append(well, d.name+" is healthy")
		case isFailing && known.well:
			failed = append(failed, d.says(errs[i]))
		case isFailing:
			ill = append(ill, d.says(errs[i]))
		}
	}
	switch {
	case len(failed) > 0:
		return verdict.Result{Outcome: verdict.Failed, Detail: strings.Join(failed, "; ")}
	case len(ill) > 0:
		return verdict.Result{Never: true, Detail: strings.Join(ill, "; ")}
	case len(well) > 0:
		return verdict.Result{Outcome: verdict.Well, Detail: strings.Join(well, ", ")}
	}
	return verdict.Result{Detail: "no network daemon was healthy yet"}
}

// ask returns nil when the daemon is healthy. On a host with IPv6 alone it may listen there alone.
func (d daemon) ask(ctx context.Context) error {
	r, err := get(ctx, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), d.port), d.path, d.header)
	if isClosed(err) {
		r, err = get(ctx, netip.AddrPortFrom(netip.IPv6Loopback(), d.port), d.path, d.header)
	}
	switch r.status { // a long answer may be cut, so that there is an error too
	case http.StatusOK:
		return nil
	case 0:
		return err
	}
	return statusError{d.path, r.status}
}

// statusError is an answer of a daemon that is not 200.
type statusError struct {
	path   string
	status int
}

func (e statusError) Error() string { return fmt.Sprintf("%s: status %d", e.path, e.status) }

// isClosed reports whether nobody listens on a port of loopback. A host may have no IPv6.
func isClosed(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// isAbsent reports whether nothing shows that the daemon is there: nobody took the connection,
// or a program did that does not know the path. That may be an older release of the daemon.
// Packets get lost on loopback too, where the connection table is full.
func isAbsent(err error) bool {
	if answer, ok := errors.AsType[statusError](err); ok {
		return answer.status < http.StatusInternalServerError
	}
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// says tells what is wrong with a daemon, for people.
func (d daemon) says(err error) string {
	return fmt.Sprintf("%s on port %d: %s", d.name, d.port, why(err))
}
