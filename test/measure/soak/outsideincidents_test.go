package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/process"
)

// slots is how many eviction slots there are.
const slots = 2

// outsideIncidents befall what is around the host, one after another, beside those
// of the host.
func (w *week) outsideIncidents() []incident {
	return []incident{
		{kind: "the API server restarts", perDay: 1, play: w.restartAPIServer},
		{kind: "connections to the API server are cut", perDay: 6, play: w.cut},
		{kind: "the API server is away", perDay: 2, play: w.refuse},
		{kind: "the API server is silent", perDay: 0.5, play: w.hush, felt: time.Minute},
		{kind: "a configuration is valid", perDay: 4, play: w.reconfigure},
		{kind: "a configuration is not valid", perDay: 4, play: w.misconfigure},
		{kind: "the token is rotated", perDay: 6, play: func(ctx context.Context) error { return eventually(ctx, func() error { return w.rotate(ctx) }) }},
		{kind: "a peer goes and comes", perDay: 2, play: w.restartPeer},
		{kind: "the list of peers changes", perDay: 4, play: w.changePeers},
		{kind: "hostile connections", perDay: 4, play: w.attack},
	}
}

func (w *week) restartAPIServer(ctx context.Context) error { return w.cluster.RestartAPIServer(ctx) }

// cut resets all connections of the agent at once. It may connect again.
func (w *week) cut(context.Context) error {
	w.gate.Refuse()
	w.gate.Open()
	return nil
}

// refuse refuses connections of the agent for some seconds.
func (w *week) refuse(ctx context.Context) error {
	w.gate.Refuse()
	defer w.gate.Open()
	return process.Pause(ctx, time.Second+time.Duration(w.outsideDice.IntN(3000))*time.Millisecond)
}

// hush lets the connections of the agent stand and says nothing for some seconds.
// Those that are there stay silent for good.
func (w *week) hush(ctx context.Context) error {
	w.gate.Hush()
	defer w.gate.Open()
	return process.Pause(ctx, 5*time.Second)
}

// reconfigure gives the agent another configuration and waits until it is in force.
func (w *week) reconfigure(ctx context.Context) error {
	all := variants()
	if err := w.configure(all[w.outsideDice.IntN(len(all))]); err != nil {
		return err
	}
	return w.awaitMetric(ctx, "taintlet_config_refused", 0)
}

// misconfigure gives the agent a configuration that it has to refuse, and then one
// that it takes.
func (w *week) misconfigure(ctx context.Context) error {
	all := refused()
	if err := w.configure(all[w.outsideDice.IntN(len(all))]); err != nil {
		return err
	}
	err := w.awaitMetric(ctx, "taintlet_config_refused", 1)
	return errors.Join(err, w.reconfigure(ctx))
}

func (w *week) awaitMetric(ctx context.Context, name string, want float64) error {
	return eventually(ctx, func() error {
		if now := w.scraper.sum(name); now != want {
			return fmt.Errorf("%s is %g", name, now)
		}
		return nil
	})
}

// restartPeer ends a peer and starts it again.
func (w *week) restartPeer(ctx context.Context) error {
	number := 1 + w.outsideDice.IntN(peers)
	if err := w.peers[number].Stop(graceful); err != nil {
		return err
	}
	err := process.Pause(ctx, 2*time.Second)
	again, failed := w.runPeer(w.ofPeers, number)
	if failed != nil {
		return failed
	}
	w.peers[number] = again
	return err
}

// changePeers names more Nodes at the address of a peer, or its own alone again.
func (w *week) changePeers(ctx context.Context) error {
	number := 1 + w.outsideDice.IntN(peers)
	slice := w.slice(nodeOf(number), w.ports[number])
	for i := range w.outsideDice.IntN(8) {
		bed.AddEndpoint(slice, fmt.Sprintf("%s-%d", nodeOf(number), i), w.hostIP.String())
	}
	return eventually(ctx, func() error { return w.putSlice(ctx, slice) })
}

func (w *week) putSlice(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	_, err := w.cluster.Client().DiscoveryV1().EndpointSlices(bed.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

// holdSlots makes somebody the holder of all eviction slots; empty: nobody.
func (w *week) holdSlots(ctx context.Context, holder string) error {
	leases := w.cluster.Client().CoordinationV1().Leases(bed.Namespace)
	for i := range slots {
		if err := eventually(ctx, func() error {
			lease, err := leases.Get(ctx, fmt.Sprint("taintlet-evict-", i), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if lease.Spec = (coordinationv1.LeaseSpec{}); holder != "" {
				now, seconds := metav1.NowMicro(), int32(3600)
				lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, RenewTime: &now, LeaseDurationSeconds: &seconds}
			}
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// attack opens many connections to the agent's port from several addresses, sends
// what no client should, and holds them for a moment.
func (w *week) attack(ctx context.Context) error {
	const each, sources = 4, 16
	var group sync.WaitGroup
	for i := range sources {
		for j := range each * len(nonsense()) {
			group.Go(func() {
				dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i))}, Timeout: 5 * time.Second}
				connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", w.ports[0]))
				if err != nil {
					return
				}
				defer connection.Close()                                         //nolint:errcheck // the agent may have closed it
				_ = connection.SetDeadline(time.Now().Add(5 * time.Second))      // a connection that is there takes it
				_, _ = io.WriteString(connection, nonsense()[j%len(nonsense())]) // the agent may have closed it
				_ = process.Pause(ctx, 2*time.Second)
			})
		}
	}
	group.Wait()
	return ctx.Err()
}

// nonsense is what is sent to the port. Nothing of it is a whole request that has to
// be answered, but for the last, whose answers nobody reads.
func nonsense() []string {
	return []string{
		"",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 64<<10),
		"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n" + strings.Repeat("x", 64<<10),
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00\xff", 300),
		"GET /healthz HTTP/1.1\r\n",
		strings.Repeat("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 100),
	}
}
