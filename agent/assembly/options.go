package assembly

import (
	"net/netip"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/fleet/dnspods"
)

// Values of Options.DryRun.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// Options say in what agents differ.
type Options struct {
	Node, Namespace string
	// RestConfig is how the API server is reached. DryRunClient needs none.
	RestConfig *rest.Config
	DryRun     string
	// HostIP is an address of the host, Listen where /peer is answered. The zero
	// value: not known, and nowhere.
	HostIP netip.Addr
	Listen netip.AddrPort
	// DNSPods says where the pods of the cluster's DNS are; the zero value: where most
	// clusters have them.
	DNSPods dnspods.Where

	// Agent is the agent without its Client, Slots, Fleet and Recorder, which New adds.
	agent.Agent
}
