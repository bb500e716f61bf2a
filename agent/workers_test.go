package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// deaf is a Node whose watch ends.
type deaf struct {
	*node.Memory
	with error
}

func (d deaf) Watch(context.Context, chan<- *taints.Node) error { return d.with }

// An agent whose watch, HTTP server or other worker has ended is no agent any
// more: it ends, says which one it was, and is started anew by the kubelet.
func TestUnexpectedEndOfAWorkerEndsTheAgent(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		watchEnds bool
		with      error
		want      string
	}{
		"watch with an error":    {true, errors.New("gone"), "watch of the node ended: gone"},
		"watch without an error": {true, nil, "watch of the node ended"},
		"http server":            {false, nil, "http server ended: accept"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			offline := node.NewMemory("host", log)
			a := &agent.Agent{
				Config: config.Default(), Client: offline, Slots: slots.Rehearsed{Log: log}, Recorder: &agent.Told{}, Log: log,
				NewProbe: func(c config.Condition) probes.Probe { return &probe{condition: c.Name, level: probes.OK} },
				Boot:     decide.Boot{ID: "boot", At: time.Now()}, Now: time.Now, Instance: "test",
			}
			if c.watchEnds {
				a.Client = deaf{offline, c.with}
			} else {
				listener.Close() //nolint:errcheck // it is what makes the server end
			}
			if err := a.Run(t.Context(), listener); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run returned %v, want %q", err, c.want)
			}
		})
	}
}
