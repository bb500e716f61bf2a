package kubelet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/transport"

	"github.com/taintlet/taintlet/test/process"
)

// Memory is what the kubelet knows of the host's memory.
type Memory struct {
	Time time.Time `json:"time"` // of the sample
	// AvailableBytes is the capacity less the working set of the root cgroup,
	// and what the signal memory.available of the eviction manager means.
	AvailableBytes uint64 `json:"availableBytes"`
}

// Get asks the kubelet for a page, such as /metrics/resource.
func (k *Kubelet) Get(ctx context.Context, page string) ([]byte, error) {
	// The kubelet's certificate is signed by itself, and it is our own child.
	connections := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer connections.CloseIdleConnections()
	client := &http.Client{Transport: transport.NewBearerAuthRoundTripper(k.cluster.Admin().BearerToken, connections)}
	return process.Get(ctx, client, "https://"+net.JoinHostPort(loopback, k.port)+page)
}

// Memory asks the kubelet's summary API. The answer may be some seconds old.
func (k *Kubelet) Memory(ctx context.Context) (Memory, error) {
	body, err := k.Get(ctx, "/stats/summary?only_cpu_and_memory=true")
	if err != nil {
		return Memory{}, fmt.Errorf("ask the kubelet about memory: %w", err)
	}
	var summary struct {
		Node struct {
			Memory Memory `json:"memory"`
		} `json:"node"`
	}
	if err := json.Unmarshal(body, &summary); err != nil {
		return Memory{}, fmt.Errorf("ask the kubelet about memory: %w", err)
	}
	if summary.Node.Memory.AvailableBytes == 0 {
		return Memory{}, fmt.Errorf("ask the kubelet about memory: its answer has no available bytes")
	}
	return summary.Node.Memory, nil
}
