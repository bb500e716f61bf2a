package footprint

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/process"
)

const exporterPort = 9100

// host is a host of the bed, and a client that connects from there.
type host struct {
	*bed.Host
	client *http.Client
}

// newHost gives a host its client, which keeps connections as Prometheus does.
func newHost(of *bed.Host) *host {
	return &host{of, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = of.Do(func() (err error) {
				c, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return c, err
		},
	}}}
}

func url(port int, path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }

// run starts a program as the agents' user.
func (h *host) run(name string, command *exec.Cmd, log string) (*process.Process, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bed.AgentUID, Gid: bed.AgentUID}}
	return h.Start(name, command, log)
}
