package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/probes"
)

const (
	dryRunNone   = "none"
	dryRunClient = "client"
)

// options are the flags: where and how the process runs. What it decides by is
// in the configuration file.
type options struct {
	nodeName            string
	kubeconfig          string
	namespace           string
	config              string
	host                probes.Host
	once                bool
	output              string
	dryRun              string
	checkConfig         bool
	cleanup             string
	lifecycleController bool
	listen              string
	logFormat           string
	verbosity           int
	version             bool
}

// parse reads the flags and reports all that is wrong with them at once.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("taintlet", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.StringVar(&o.nodeName, "node-name", defaultNodeName(), "name of the Node that this host is (default: $NODE_NAME, then the host name)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's service account)")
	flags.StringVar(&o.namespace, "namespace", defaultNamespace(), "namespace of the agents' Service and of the eviction slots (default: $POD_NAMESPACE, then taintlet-system)")
	flags.StringVar(&o.config, "config", "", "TaintletConfiguration file (default: the built-in configuration)")
	flags.StringVar(&o.host.Root, "host-root", "/", "where the host's root file system is mounted")
	flags.StringVar(&o.host.Proc, "procfs", "/proc", "where the host's procfs is mounted")
	flags.StringVar(&o.host.Sys, "sysfs", "/sys", "where the host's sysfs is mounted")
	flags.BoolVar(&o.once, "once", false, "take one sample of everything, print it and exit: 0 all OK, 3 some condition is not; never contacts an API server")
	flags.StringVarP(&o.output, "output", "o", "table", "format of --once: table, json or yaml")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "none, or client: run without any API server and log each change that would be made")
	flags.BoolVar(&o.checkConfig, "check-config", false, "check the configuration, say what it asks for and exit")
	flags.StringVar(&o.cleanup, "cleanup", "", "remove everything of taintlet's and exit; node: from this Node; all: from every Node; stale: from Nodes without an agent for a day. Stop the agents first")
	flags.BoolVar(&o.lifecycleController, "lifecycle-controller", true, "the cluster runs a node-lifecycle-controller that owns the well-known NoSchedule taints")
	flags.StringVar(&o.listen, "listen", ":9808", "address of /metrics, /healthz, /readyz and /peer; empty: none")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	flags.IntVarP(&o.verbosity, "verbosity", "v", 0, "1: log details too")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return o, errors.Join(
		noArguments(flags.Args()),
		o.validNodeName(),
		oneOf("output", o.output, "table", "json", "yaml"),
		oneOf("dry-run", o.dryRun, dryRunNone, dryRunClient),
		oneOf("log-format", o.logFormat, "text", "json"),
		o.validCleanup(flags.Changed("cleanup")),
		o.onlyOneTask(),
	)
}

func defaultNodeName() string {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "" // refused by validNodeName
	}
	return strings.ToLower(name) // as the kubelet does
}

func defaultNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	return "taintlet-system"
}

// validNodeName checks the name where it is used to find a Node.
func (o *options) validNodeName() error {
	if o.once || o.checkConfig || o.version {
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(o.nodeName); len(problems) > 0 {
		return fmt.Errorf("--node-name %q: %s", o.nodeName, strings.Join(problems, "; "))
	}
	return nil
}

func (o *options) validCleanup(given bool) error {
	if !given {
		return nil
	}
	return oneOf("cleanup", o.cleanup, cleanupOfNode, cleanupOfAll, cleanupOfStale)
}

// onlyOneTask refuses flags of which one would silently win.
func (o *options) onlyOneTask() error {
	var tasks []string
	for flag, given := range map[string]bool{"--once": o.once, "--check-config": o.checkConfig, "--cleanup": o.cleanup != "", "--dry-run=client": o.dryRun == dryRunClient} {
		if given {
			tasks = append(tasks, flag)
		}
	}
	if len(tasks) > 1 {
		slices.Sort(tasks)
		return fmt.Errorf("%s: only one of them at a time", strings.Join(tasks, ", "))
	}
	return nil
}

func noArguments(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

func oneOf(flag, value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("--%s %q: must be one of %s", flag, value, strings.Join(allowed, ", "))
	}
	return nil
}
