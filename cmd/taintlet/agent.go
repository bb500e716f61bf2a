package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/agent/assembly"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/agent/serve"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/taints"
)

// options are the agent's flags: where and how it runs. What it decides by is in
// the configuration file.
type options struct {
	nodeName   string
	kubeconfig string
	namespace  string
	config     string
	host       probes.Host
	dryRun     string
	listen     string
	dnsPods    string
	logFormat  string
	verbosity  int
}

func agentProgram() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "taintlet",
		Short: "Run the agent, which watches this host and taints its Node",
		Long: `taintlet watches the health of its host and taints its own Kubernetes Node while the host is in trouble.
Without a command it runs the agent. kubectl-taintlet is the program for operators.

Exit codes: 0 is success, 1 is a failure, 2 means wrong arguments or a wrong configuration, and 3 means
that something is not healthy (once).`,
		Example: `  # Run without an API server, and log each change instead of making it
  taintlet --dry-run=client --listen=
  # Try another configuration beside an installed agent
  taintlet --dry-run=server --config=new.yaml --kubeconfig=kubeconfig --listen=
  # Run on a host whose Node has another name
  taintlet --kubeconfig=/etc/taintlet/kubeconfig --node-name=worker-1`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.ErrOrStderr()) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	addNodeName(flags, &o.nodeName)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: the pod's service account)")
	flags.StringVar(&o.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), command.DefaultNamespace), "`namespace` of the agents (default: $POD_NAMESPACE, then taintlet-system)")
	flags.Lookup("namespace").DefValue = ""
	command.AddConfig(flags, &o.config)
	addHost(flags, &o.host)
	command.AddChoice(c, &o.dryRun, "dry-run", "", "`mode` of a dry run. client: run without an API server; server: the API server checks each write and stores none. The agent logs each change", assembly.DryRunNone, assembly.DryRunClient, assembly.DryRunServer)
	flags.StringVar(&o.listen, "listen", ":4808", "`address` of /metrics, /healthz, /readyz and /peer; empty: none")
	flags.StringVar(&o.dnsPods, "dns-pods", dnspods.Default().String(), "`namespace/selector` of the EndpointSlices of the cluster's DNS pods")
	command.AddChoice(c, &o.logFormat, "log-format", "", "log `format`: text or json", "text", "json")
	flags.IntVarP(&o.verbosity, "verbosity", "v", 0, "log level: 0, or 1 for details")
	return c
}

// gcPercent lets the heap grow to 2 MiB before it is collected. With Go's default of 100 that would
// be 4 MiB, and half as many collections. An agent's live heap is 0.6 MiB.
const gcPercent = 50

func (o *options) run(ctx context.Context, stderr io.Writer) error {
	cfg, err := command.LoadConfig(o.config)
	if err := errors.Join(command.CheckNodeName("--node-name", o.nodeName), err); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return runAgent(ctx, o, cfg, stderr)
}

func runAgent(ctx context.Context, o *options, cfg *config.Config, stderr io.Writer) error {
	log := newLogger(o, stderr)
	klog.SetSlogLogger(log) // what client-go has to say
	parts, err := o.parts(cfg, log)
	if err != nil {
		return err
	}
	if parts.RestConfig != nil && o.dryRun == assembly.DryRunNone {
		name, err := lockName(o.nodeName, parts.RestConfig)
		if err != nil {
			return err
		}
		lock, err := o.lock(ctx, name, log)
		if lock == nil {
			return err
		}
		defer lock.Close() //nolint:errcheck // it ends with this process in any case
	}
	var listener net.Listener
	address := ""
	if o.listen != "" {
		if listener, err = serve.Listen(ctx, o.listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		address = listener.Addr().String()
		if bound, err := netip.ParseAddrPort(address); err == nil {
			parts.Listen = bound
		}
	}
	a, stop, err := assembly.New(ctx, parts)
	if err != nil {
		return err
	}
	defer stop()
	log.Info("taintlet starts", "version", parts.Version, "node", o.nodeName, "instance", parts.Instance, "config", cfg.Hash, "dryRun", o.dryRun, "listen", address)
	keeping, stopKeeping := context.WithCancel(ctx)
	defer stopKeeping()
	go keepPages(keeping, log)
	return a.Run(ctx, listener)
}

func (o *options) parts(cfg *config.Config, log *slog.Logger) (assembly.Options, error) {
	dnsPods, err := dnspods.Parse(o.dnsPods)
	if err != nil {
		return assembly.Options{}, fmt.Errorf("--dns-pods: %w", err)
	}
	boot, now, err := bootClock()
	if err != nil {
		return assembly.Options{}, err
	}
	parts := assembly.Options{
		Node: o.nodeName, Namespace: o.namespace, DryRun: o.dryRun, DNSPods: dnsPods, Config: cfg, Log: log,
		// No other process has this name. It begins with the pod's, where the manifest passes that on, or the host's.
		Instance: fmt.Sprintf("%.60s-%s", cmp.Or(os.Getenv("POD_NAME"), defaultNodeName()), strings.ToLower(rand.Text()[:6])),
		Boot:     boot, Now: now, Version: command.Version(),
		NewProbe: hostprobes.NewProbe(o.host),
	}
	parts.HostIP, _ = netip.ParseAddr(os.Getenv("HOST_IP")) // the zero value: it is not known
	if o.config != "" {
		parts.Reload = config.HostSchema().Reloader(o.config, cfg.Hash)
	}
	if o.dryRun != assembly.DryRunClient {
		parts.RestConfig, err = apiConfig(o.kubeconfig)
	}
	return parts, err
}

func apiConfig(kubeconfig string) (restConfig *rest.Config, err error) {
	if kubeconfig == "" {
		if restConfig, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("no --kubeconfig given and not in a cluster (to see what taintlet sees without one: taintlet once, or --dry-run=client): %w", err)
		}
	} else if restConfig, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	restConfig.UserAgent = command.UserAgent()
	return restConfig, nil
}

func newLogger(o *options, w io.Writer) *slog.Logger {
	handlerOptions := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: shorten}
	if o.verbosity > 0 {
		handlerOptions.Level = slog.LevelDebug
	}
	if o.logFormat == "json" {
		return slog.New(newCalmHandler(slog.NewJSONHandler(w, handlerOptions)))
	}
	return slog.New(newCalmHandler(slog.NewTextHandler(w, handlerOptions)))
}

// shorten cuts what is logged. Messages of the API server may repeat what anybody
// wrote, up to a megabyte of it.
func shorten(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(taints.Message(value))
	case error:
		a.Value = slog.StringValue(taints.Message(value.Error()))
	}
	return a
}

// bootClock returns the host's boot and a clock that counts from it. The clock
// begins at the wall time of now and goes on by CLOCK_BOOTTIME, which counts
// suspended time too (clock_gettime(2)): steps of the wall clock do not move it.
func bootClock() (decide.Boot, func() time.Time, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id") // of the kernel, in every procfs
	if err != nil {
		return decide.Boot{}, nil, fmt.Errorf("boot ID: %w", err)
	}
	boot := decide.Boot{ID: strings.TrimSpace(string(id)), At: time.Now().Round(0).Add(-hostfile.Clock(unix.CLOCK_BOOTTIME))}
	return boot, func() time.Time { return boot.At.Add(hostfile.Clock(unix.CLOCK_BOOTTIME)) }, nil
}
