package network

import (
	"strings"

	"github.com/taintlet/taintlet/probes"
)

// sample is the interfaces that had a default route at one time, by name.
type sample struct{ links []link }

// link is an interface and whether it has carrier. err says why that is not
// known.
type link struct {
	name    string
	carrier bool
	err     error
}

// judge says what a sample means. seen says that this sample or an earlier one had
// a default route. One interface with carrier is enough. Severity is 100 where
// there is none, and otherwise 50 times the share of interfaces without carrier.
func (s sample) judge(seen bool) probes.Observation {
	o := probes.Observation{Condition: probes.NetworkUnavailable, Level: probes.OK}
	up, down, troubles := s.sorted()
	switch {
	case len(s.links) == 0 && !seen:
		// The probe may have been started after the route was lost. Hysteresis
		// makes this sample neither set nor clear.
		o.Hysteresis, o.Reason = true, "NoDefaultRouteSeen"
		o.Message = "no default route, and none seen since the start: taken for how this host is meant to be"
	case len(s.links) == 0:
		o.Level, o.Severity, o.Reason = probes.Degraded, 100, "DefaultRouteGone"
		o.Message = "no default route left, IPv4 or IPv6; there was one before"
	case len(up) == 0 && len(troubles) > 0:
		return probes.UnknownBecause(probes.NetworkUnavailable, troubles[0])
	case len(up) == 0:
		o.Level, o.Severity, o.Reason = probes.Degraded, 100, "NoCarrier"
		o.Message = "no carrier on " + strings.Join(down, ", ") + ", and no default route over another interface"
	case len(down) > 0:
		o.Severity, o.Reason = 50*len(down)/len(s.links), "SomeCarrierLost"
		o.Message = "default route over " + strings.Join(up, ", ") + " with carrier; no carrier on " + strings.Join(down, ", ")
	default:
		o.Reason, o.Message = "DefaultRouteUp", "default route over "+strings.Join(up, ", ")+" with carrier"
	}
	return o
}

// sorted returns the names of the links with carrier and of those without, and
// why it is not known of the others.
func (s sample) sorted() (up, down []string, troubles []error) {
	for _, l := range s.links {
		switch {
		case l.err != nil:
			troubles = append(troubles, l.err)
		case l.carrier:
			up = append(up, l.name)
		default:
			down = append(down, l.name)
		}
	}
	return up, down, troubles
}
