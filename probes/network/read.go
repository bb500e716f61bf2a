package network

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// readSample reads which interfaces have a default route, and whether they have
// carrier.
func readSample(h probes.Host) (s sample, err error) {
	names, err := readRoutes(filepath.Join(h.Proc, "net", "route"), "Route", parseRoutes)
	if err != nil {
		return s, err
	}
	names6, err := readRoutes(filepath.Join(h.Proc, "net", "ipv6_route"), "IPv6Route", parseIPv6Routes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the kernel may have no IPv6
		return s, err
	}
	names = append(names, names6...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		carrier, err := readCarrier(filepath.Join(h.Sys, "class", "net", name, "carrier"))
		s.links = append(s.links, link{name, carrier, err})
	}
	return s, nil
}

// readCarrier reads whether an interface has carrier
// (Documentation/ABI/testing/sysfs-class-net). The kernel answers EINVAL for an
// interface that is down.
func readCarrier(path string) (bool, error) {
	text, err := hostfile.Read(path)
	switch {
	case errors.Is(err, syscall.EINVAL):
		return false, nil
	case err != nil:
		return false, probes.Because("CarrierUnreadable", "reading carrier: %w", err)
	case text == "1\n":
		return true, nil
	case text == "0\n":
		return false, nil
	}
	return false, probes.Because("CarrierGarbled", "reading carrier: %s holds %s, not 0 or 1", path, hostfile.Excerpt(text))
}
