// Package assembly puts an agent together: its connection to the API server, its
// fleet and its probes. cmd/taintlet runs one such agent on a host. test/measure/scale
// runs thousands. These differ in nothing but what Options say.
package assembly

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/probes"
)

// Values of Options.DryRun.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// serviceName is the headless Service of the agents, as the manifests have it.
const serviceName = "taintlet"

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

	// The others are those of agent.Agent.
	Config              *config.Config
	Reload              func() (*config.Config, error)
	Log                 *slog.Logger
	Instance            string
	Boot                decide.Boot
	Now                 func() time.Time
	LifecycleController bool
	Version             string
}

// New returns an agent that is ready to run, and what ends its connection.
func New(ctx context.Context, o Options) (*agent.Agent, func(), error) {
	c, stop, err := connect(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	others := fleet.New(fleet.Options{
		Node: o.Node, HostIP: o.HostIP, Listen: o.Listen, Namespace: o.Namespace, Service: serviceName, DNSPods: o.DNSPods,
		APIServer: c.apiServer, Source: c.source, Log: o.Log,
	})
	return &agent.Agent{
		Config: o.Config, Reload: o.Reload, NewProbe: o.NewProbe, Client: c.node, Slots: c.slots, Fleet: others,
		Recorder: c.events, Log: o.Log, Instance: o.Instance, Boot: o.Boot, Now: o.Now,
		LifecycleController: o.LifecycleController, Version: o.Version,
	}, stop, nil
}
