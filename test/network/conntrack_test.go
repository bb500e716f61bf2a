package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

const (
	// tableSize is what the kernel's connection tables are limited to. A host of
	// the bed tracks some hundred connections.
	tableSize = 1000
	// heldConnections fill one table. They are established, so that the kernel
	// drops none of them early.
	heldConnections = tableSize + 200
)

// limitTables limits the tables while its input is open. The limit is one for all
// network namespaces, and only the first one may write it: it is that of the process
// that made the namespaces of the tests (fleet.Main). Whatever becomes of the
// test, it is what it was before when the input is closed. A machine that tracks
// connections itself is left alone.
const limitTables = `
cd /proc/sys/net/netfilter || exit 1
if [ "$(cat nf_conntrack_count)" -gt 100 ]; then echo "this machine tracks connections of its own" >&2; exit 1; fi
before=$(cat nf_conntrack_max)
trap 'echo "$before" > nf_conntrack_max' EXIT
echo %d > nf_conntrack_max && echo limited
cat > /dev/null
`

// full fills the connection table of a host with established connections to where
// the API server is, which tracks none, and lets no table be larger.
func (s scene) full(number int) fault {
	var held []io.Closer
	var limit *exec.Cmd
	var input io.WriteCloser
	begin := func(a *fleet.Agent) error {
		listener, err := net.Listen("tcp", s.serverAddress().Addr().String()+":0")
		if err != nil {
			return err
		}
		held = append(held, listener)
		go hold(listener)
		to := netip.MustParseAddrPort(listener.Addr().String())
		for range heldConnections {
			connection, err := a.Dial(to)
			if err != nil {
				return err
			}
			held = append(held, connection)
		}
		limit = exec.Command("nsenter", "--target="+strconv.Itoa(os.Getppid()), "--net",
			"sh", "-c", fmt.Sprintf(limitTables, tableSize))
		said := &strings.Builder{}
		limit.Stderr = said
		output, err := limit.StdoutPipe()
		if err != nil {
			return err
		}
		if input, err = limit.StdinPipe(); err != nil {
			return err
		}
		if err := limit.Start(); err != nil {
			return err
		}
		if _, err := io.ReadFull(output, make([]byte, len("limited"))); err != nil {
			return fmt.Errorf("limit the connection tables: %w: %s", errors.Join(err, limit.Wait()), said)
		}
		return nil
	}
	end := func(*fleet.Agent) error {
		errs := []error{input.Close(), limit.Wait()}
		for _, one := range held {
			errs = append(errs, one.Close())
		}
		return errors.Join(errs...)
	}
	return fault{begin: onHosts([]int{number}, begin), end: onHosts([]int{number}, end)}
}

// hold accepts connections until the listener is closed, and keeps them.
func hold(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close() //nolint:errcheck // nothing went through it
	}
}
