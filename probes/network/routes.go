package network

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// The parsers of routing tables are ours. procfs has one for IPv4 only. That one
// takes an empty file for an empty table, and does not notice a file that ends
// within a line. It drops the first line unread, reads the hexadecimal flags as
// decimal, and refuses metrics that older kernels print as negative.

// Flags of a route, both IPv4 and IPv6 (include/uapi/linux/route.h).
const (
	routeUp     = 0x0001
	routeReject = 0x0200
)

// readRoutes returns the interfaces with a default route in the table at path.
// table is the table's name in a reason.
func readRoutes(path, table string, parse func(io.Reader) ([]string, error)) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, probes.Because(table+"Unreadable", "reading routes: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	names, err := parse(file)
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return nil, probes.Because(table+"Unreadable", "reading routes: %w", pathErr)
	}
	if err != nil {
		return nil, probes.Because(table+"Garbled", "reading routes from %s: %w", path, err)
	}
	return names, nil
}

// parseRoutes returns the interfaces with a default route from the text of
// net/route. A text without the heading is an error, because an empty table has
// it too. (The kernel leaves it out only in a network namespace that never had a
// route. No host has such a namespace.)
func parseRoutes(r io.Reader) (names []string, err error) {
	const heading = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
	scanner := hostfile.Lines(r)
	if !scanner.Scan() {
		return nil, cmp.Or(scanner.Err(), errors.New("the heading is missing"))
	}
	if strings.Join(strings.Fields(scanner.Text()), " ") != heading {
		return nil, fmt.Errorf("%s is not the heading of a routing table", hostfile.Excerpt(scanner.Text()))
	}
	for scanner.Scan() {
		name, isDefault, err := parseRoute(strings.Fields(scanner.Text()))
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", hostfile.Excerpt(scanner.Text()), err)
		}
		if isDefault {
			names = append(names, name)
		}
	}
	return names, scanner.Err()
}

// parseRoute says whether one line of net/route is a default route that leads
// somewhere, and over which interface. A route to nowhere (blackhole,
// unreachable) has the interface "*", and some have the flag routeReject too.
func parseRoute(columns []string) (name string, isDefault bool, err error) {
	if len(columns) != 11 {
		return "", false, fmt.Errorf("%d columns instead of 11", len(columns))
	}
	for i, column := range columns {
		switch i {
		case 0:
			err = checkInterface(column)
		case 1, 2, 7: // destination, gateway, mask
			_, err = parseHex(column, 8)
		case 3: // flags, below
		default: // numbers; some kernels print large metrics as negative
			_, err = strconv.ParseInt(column, 10, 64)
		}
		if err != nil {
			return "", false, fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	flags, err := parseHex(columns[3], 4)
	if err != nil {
		return "", false, fmt.Errorf("flags: %w", err)
	}
	leadsSomewhere := columns[0] != "*" && flags&routeUp != 0 && flags&routeReject == 0
	return columns[0], leadsSomewhere && columns[1] == "00000000" && columns[7] == "00000000", nil
}

// parseIPv6Routes returns the interfaces with a default route from the text of
// net/ipv6_route, which has no heading. An empty text is an error: where the
// kernel has IPv6, there is always the line that rejects what no other route
// takes.
func parseIPv6Routes(r io.Reader) (names []string, err error) {
	scanner := hostfile.Lines(r)
	empty := true
	for scanner.Scan() {
		empty = false
		name, isDefault, err := parseIPv6Route(strings.Fields(scanner.Text()))
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", hostfile.Excerpt(scanner.Text()), err)
		}
		if isDefault {
			names = append(names, name)
		}
	}
	if empty && scanner.Err() == nil {
		return nil, errors.New("the file is empty")
	}
	return names, scanner.Err()
}

// parseIPv6Route says whether one line of net/ipv6_route is a default route
// that leads somewhere, and over which interface. All numbers are hexadecimal
// (rt6_info_route in net/ipv6/route.c).
func parseIPv6Route(columns []string) (name string, isDefault bool, err error) {
	// Destination, its prefix length, source, its prefix length, next hop,
	// metric, references, uses, flags, interface.
	widths := [...]int{32, 2, 32, 2, 32, 8, 8, 8, 8}
	if len(columns) != len(widths)+1 {
		return "", false, fmt.Errorf("%d columns instead of %d", len(columns), len(widths)+1)
	}
	for i, width := range widths {
		if _, err := parseHex(columns[i], width); err != nil {
			return "", false, fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	name = columns[len(widths)]
	if err := checkInterface(name); err != nil {
		return "", false, err
	}
	flags, err := parseHex(columns[8], 8)
	leadsSomewhere := name != "lo" && flags&routeUp != 0 && flags&routeReject == 0
	toAnywhere := strings.Trim(columns[0], "0") == "" && columns[1] == "00"
	return name, leadsSomewhere && toAnywhere, err
}

// parseHex returns a hexadecimal number of exactly width digits. Of a number that
// does not fit 64 bits it only checks the digits.
func parseHex(digits string, width int) (uint64, error) {
	if len(digits) != width || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return 0, fmt.Errorf("%s is not a hexadecimal number of %d digits", hostfile.Excerpt(digits), width)
	}
	if width > 16 {
		return 0, nil
	}
	return strconv.ParseUint(digits, 16, 64)
}

// checkInterface refuses a name that the kernel allows no interface
// (dev_valid_name in net/core/dev.c), because the name becomes part of a path.
func checkInterface(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 15 ||
		strings.ContainsFunc(name, func(c rune) bool { return c == '/' || c == ':' || unicode.IsSpace(c) }) {
		return fmt.Errorf("%s is not the name of an interface", hostfile.Excerpt(name))
	}
	return nil
}
