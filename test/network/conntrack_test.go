package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"

	"github.com/taintlet/taintlet/test/netbed"
)

const (
	// tableSize is what the kernel's connection tables are limited to. A host of
	// the bed tracks some hundred connections.
	tableSize = 1000
	// heldConnections fill one table. They are established, so that the kernel
	// drops none of them early.
	heldConnections = tableSize + 200
	heldPort        = 7000
)

// limitTables limits the tables while its input is open. The limit is one for all
// network namespaces, and only the first one may write it. Whatever becomes of the
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

// full fills the connection table of a host with established connections to the
// first one, and lets no table be larger.
func (s *scene) full(number int) fault {
	var held []net.Conn
	var limit *exec.Cmd
	var input io.WriteCloser
	begin := func(a *agent) error {
		listener, err := s.bed.Hosts[0].Listen(fmt.Sprintf(":%d", heldPort))
		if err != nil {
			return err
		}
		go hold(listener)
		to := netip.AddrPortFrom(netbed.HostAddress(1), heldPort)
		for range heldConnections {
			connection, err := a.Dial(to)
			if err != nil {
				return err
			}
			held = append(held, connection)
		}
		limit = exec.Command("nsenter", "--target=1", "--net", "sh", "-c", fmt.Sprintf(limitTables, tableSize)) //nolint:noctx // it ends with its input
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
	end := func(*agent) error {
		errs := []error{input.Close(), limit.Wait()}
		for _, connection := range held {
			errs = append(errs, connection.Close())
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
