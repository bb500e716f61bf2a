package assembly

import (
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/probes"
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
	// NewProbe makes the probes.
	NewProbe func(config.Condition) probes.Probe

	// The other fields are those of agent.Agent.
	Config   *config.Config
	Reload   func() (*config.Config, error)
	Log      *slog.Logger
	Instance string
	Boot     decide.Boot
	Now      func() time.Time
	Version  string
}
