package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// Annotations of a flag, for completion.
const (
	choicesOf = "choices" // the values that it may have
	isFile    = "file"    // its value is a path
)

// The functions below declare flags that several verbs share. The default of
// a flag is in its usage where it depends on the host, so that help and the
// documentation are the same everywhere.

func addConfig(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "config", "", "TaintletConfiguration `file` (default: the built-in configuration)")
	annotate(flags, "config", isFile)
}

func addHost(flags *pflag.FlagSet, host *probes.Host) {
	flags.StringVar(&host.Root, "host-root", "/", "`directory` where the host's root file system is mounted")
	flags.StringVar(&host.Proc, "procfs", "/proc", "`directory` where the host's procfs is mounted")
	flags.StringVar(&host.Sys, "sysfs", "/sys", "`directory` where the host's sysfs is mounted")
	for _, name := range []string{"host-root", "procfs", "sysfs"} {
		annotate(flags, name, isFile)
	}
}

func addNodeName(flags *pflag.FlagSet, name *string) {
	flags.StringVar(name, "node-name", defaultNodeName(), "`name` of the Node that this host is (default: $NODE_NAME, then the host name)")
	flags.Lookup("node-name").DefValue = ""
}

func addLifecycleController(flags *pflag.FlagSet, present *bool) {
	flags.BoolVar(present, "lifecycle-controller", true, "the cluster runs a node-lifecycle-controller that owns the well-known NoSchedule taints")
}

// addChoice declares a flag that has one of some values; the first is the default.
func addChoice(flags *pflag.FlagSet, value *string, name, shorthand, usage string, allowed ...string) {
	flags.StringVarP(value, name, shorthand, allowed[0], usage)
	annotate(flags, name, choicesOf, allowed...)
}

func annotate(flags *pflag.FlagSet, name, key string, values ...string) {
	if err := flags.SetAnnotation(name, key, values); err != nil {
		panic(err) // the flag was declared just before
	}
}

// checkChoices reports all flags whose value is none of those that are allowed.
func checkChoices(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		allowed := f.Annotations[choicesOf]
		if len(allowed) > 0 && !slices.Contains(allowed, f.Value.String()) {
			errs = append(errs, fmt.Errorf("--%s %q: must be one of %s", f.Name, f.Value, strings.Join(allowed, ", ")))
		}
	})
	return errors.Join(errs...)
}

func defaultNodeName() string {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "" // refused by checkNodeName
	}
	return strings.ToLower(name) // as the kubelet does
}

// checkNodeName refuses a name that no Node can have. from says where it comes
// from.
func checkNodeName(from, name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return usageError{fmt.Errorf("%s %q: %s", from, name, strings.Join(problems, "; "))}
	}
	return nil
}

// loadConfig reads the configuration file.
func loadConfig(path string) (*config.Config, error) {
	cfg, err := config.HostSchema().Load(path)
	if err != nil {
		return nil, usageError{err}
	}
	return cfg, nil
}
