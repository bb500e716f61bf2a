package footprint

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// host is where programs run: a host of a bed, or this one.
type host struct {
	*process.Thread
	node string
	// address is empty on this host, where no peer asks.
	address string
	// agent and exporter are the ports of the programs.
	agent, exporter string
	client          *http.Client
}

// hostsOf returns the hosts of a bed.
func hostsOf(network *bed.Network) []*host {
	var all []*host
	for _, h := range network.Hosts {
		all = append(all, newHost(&host{
			Thread: h.Thread, node: h.Name, address: h.Address.String(), agent: strconv.Itoa(bed.AgentPort), exporter: "9100",
		}))
	}
	return all
}

// thisHost returns this host, where the usual ports may be taken.
func thisHost() (*host, error) {
	thread, err := process.NewThread(nil)
	if err != nil {
		return nil, err
	}
	ports, err := cluster.FreePorts("127.0.0.1", 2)
	if err != nil {
		return nil, err
	}
	return newHost(&host{Thread: thread, node: "bench", agent: ports[0], exporter: ports[1]}), nil
}

// newHost gives a host a client that connects from there, and keeps connections as
// Prometheus does.
func newHost(h *host) *host {
	h.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = h.Do(func() (err error) {
				c, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return c, err
		},
	}}
	return h
}

// listen is what a program listens on: where others may ask, everywhere.
func (h *host) listen(port string) string {
	if h.address == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return ":" + port
}

func (h *host) url(port, path string) string {
	return fmt.Sprintf("http://%s%s", net.JoinHostPort("127.0.0.1", port), path)
}

// run starts a program, with root as the agents' user.
func (h *host) run(name string, command *exec.Cmd, log string) (*process.Process, error) {
	if os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bed.AgentUID, Gid: bed.AgentUID}}
	}
	return h.Start(name, command, log)
}
