// Command taintlet watches the health of the host it runs on and keeps the
// right taints on its own Kubernetes Node.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
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
	"github.com/taintlet/taintlet/taints"
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
		fmt.Fprintln(stdout, "taintlet", version())
		return exitOK
	}
	cfg, err := config.Load(o.config)
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
	if err := serve(ctx, o, cfg, stderr); err != nil {
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
	client, recorder, stop, err := connect(ctx, o, log)
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
	log.Info("taintlet starts", "version", version(), "node", o.nodeName, "dryRun", o.dryRun, "listen", address(listener))
	return (&agent.Agent{
		Config: cfg, Probes: agent.NewProbes(o.host, cfg), Client: client, Recorder: recorder, Log: log, Boot: boot, Now: now,
		LifecycleController: o.lifecycleController, Version: version(),
	}).Run(ctx, listener)
}

// address is where the listener listens, for the log.
func address(listener net.Listener) string {
	if listener == nil {
		return ""
	}
	return listener.Addr().String()
}

// connect returns the Node's client and where its Events go.
func connect(ctx context.Context, o *options, log *slog.Logger) (agent.NodeClient, record.EventRecorder, func(), error) {
	if o.dryRun == dryRunClient {
		return agent.NewOffline(o.nodeName, log), logRecorder{log}, func() {}, nil
	}
	restConfig, err := apiConfig(o.kubeconfig)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := taints.NewClient(restConfig, o.nodeName)
	if err != nil {
		return nil, nil, nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(client.EventSink(ctx))
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "taintlet", Host: o.nodeName})
	return client, recorder, broadcaster.Shutdown, nil
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
		return slog.New(slog.NewJSONHandler(w, handlerOptions))
	}
	return slog.New(slog.NewTextHandler(w, handlerOptions))
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func printRules(w io.Writer, cfg *config.Config) {
	fmt.Fprintln(w, "The configuration is valid.")
	for _, rule := range cfg.Rules {
		fmt.Fprintf(w, "%s %s asks for %s\n", rule.Condition, rule.Level, rule.Taint.Pair())
	}
}
