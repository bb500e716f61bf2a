// Command taintlet watches the health of the host it runs on and keeps the
// right taints on its own Kubernetes Node.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/taints"
)

// Requests a second to the API server, and at once.
const (
	clientRate  = 10
	clientBurst = 120
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // flags or configuration
	exitNotOK   = 3 // --once: a condition is not OK
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "taintlet: %v\nSee taintlet --help.\n", err)
		return exitUsage
	}
	if o.version {
		fmt.Fprintln(stdout, "taintlet", buildVersion())
		return exitOK
	}
	cfg, err := config.HostSchema().Load(o.config)
	if err != nil {
		fmt.Fprintf(stderr, "taintlet: %v\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case o.checkConfig:
		printRules(stdout, cfg)
		return exitOK
	case o.once:
		return once(ctx, o, cfg, stdout, stderr)
	}
	if o.cleanup != "" {
		err = cleanup(ctx, o, cfg, stdout)
	} else {
		err = serve(ctx, o, cfg, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "taintlet: %v\n", err)
		return exitFailure
	}
	return exitOK
}

// serve runs the agent until a signal comes.
func serve(ctx context.Context, o *options, cfg *config.Config, stderr io.Writer) error {
	log := newLogger(o, stderr)
	klog.SetSlogLogger(log) // what client-go has to say
	boot, now, err := bootClock(o.host.Proc)
	if err != nil {
		return err
	}
	cluster, stop, err := connect(ctx, o, log)
	if err != nil {
		return err
	}
	defer stop()
	var listener net.Listener
	if o.listen != "" {
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", o.listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
	}
	instance := instanceName()
	others := fleet.New(fleetOptions(o, cluster, listener, log))
	log.Info("taintlet starts", "version", buildVersion(), "node", o.nodeName, "instance", instance, "config", cfg.Hash, "dryRun", o.dryRun, "listen", address(listener))
	a := &agent.Agent{
		Config: cfg, NewProbe: agent.ProbesOf(config.Environment{Host: o.host, Cluster: others}), Client: cluster.node, Slots: cluster.slots, Fleet: others, Recorder: cluster.events, Log: log,
		Instance: instance, Boot: boot, Now: now, LifecycleController: o.lifecycleController, Version: buildVersion(),
	}
	if o.config != "" {
		a.Reload = func() (*config.Config, error) { return config.HostSchema().Load(o.config) }
	}
	return a.Run(ctx, listener)
}

// serviceName is the headless Service of the agents, as the manifests have it.
const serviceName = "taintlet"

// fleetOptions say where the other agents are, and where this one is for them.
func fleetOptions(o *options, c cluster, listener net.Listener, log *slog.Logger) fleet.Options {
	options := fleet.Options{
		Node: o.nodeName, Namespace: o.namespace, Service: serviceName, APIServer: c.apiServer, Source: c.source, Log: log,
	}
	if hostIP, err := netip.ParseAddr(os.Getenv("HOST_IP")); err == nil {
		options.HostIP = hostIP
	}
	if listener != nil {
		if bound, err := netip.ParseAddrPort(listener.Addr().String()); err == nil {
			options.Listen = bound
		}
	}
	return options
}

// instanceName is a name that no other process has. It begins with a name that
// people know: the pod's, where the manifest passes it on, or the host's.
func instanceName() string {
	name := os.Getenv("POD_NAME")
	if name == "" {
		name = defaultNodeName()
	}
	return fmt.Sprintf("%.60s-%s", name, strings.ToLower(rand.Text()[:6]))
}

// address is where the listener listens, for the log.
func address(listener net.Listener) string {
	if listener == nil {
		return ""
	}
	return listener.Addr().String()
}

// cluster is what the agent needs of one.
type cluster struct {
	node   agent.NodeClient
	slots  agent.SlotClient
	events record.EventRecorder
	// source reads what is known of the fleet, at this API server; nil: nothing.
	source    fleet.Source
	apiServer string
}

// connect returns the cluster, and what ends the connection.
func connect(ctx context.Context, o *options, log *slog.Logger) (cluster, func(), error) {
	if o.dryRun == dryRunClient {
		return cluster{node: agent.NewOffline(o.nodeName, log), slots: agent.OfflineSlots{Log: log}, events: logRecorder{log}}, func() {}, nil
	}
	restConfig, err := apiConfig(o.kubeconfig)
	if err != nil {
		return cluster{}, nil, err
	}
	// The Node needs few requests. Reading all slots needs up to a hundred.
	restConfig.QPS, restConfig.Burst = clientRate, clientBurst
	client, err := taints.NewClient(restConfig, o.nodeName)
	if err != nil {
		return cluster{}, nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(client.EventSink(ctx))
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "taintlet", Host: o.nodeName})
	return cluster{client, client.Slots(o.namespace), recorder, client, restConfig.Host}, broadcaster.Shutdown, nil
}

func apiConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		restConfig, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig given and not in a cluster (to see what taintlet sees without one: --once or --dry-run=client): %w", err)
		}
		return restConfig, nil
	}
	restConfig, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return restConfig, nil
}

func newLogger(o *options, w io.Writer) *slog.Logger {
	handlerOptions := &slog.HandlerOptions{Level: slog.LevelInfo}
	if o.verbosity > 0 {
		handlerOptions.Level = slog.LevelDebug
	}
	if o.logFormat == "json" {
		return slog.New(newCalmHandler(slog.NewJSONHandler(w, handlerOptions)))
	}
	return slog.New(newCalmHandler(slog.NewTextHandler(w, handlerOptions)))
}

// version is set by the linker, with -X main.version=v0.1.0, where the build
// sees no repository: in the image.
var version string

func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
