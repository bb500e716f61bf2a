package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/probes"
)

// The functions below declare flags that several verbs share. The default of
// a flag is in its usage where it depends on the host, so that help and the
// documentation are the same everywhere.

func addHost(flags *pflag.FlagSet, host *probes.Host) {
	flags.StringVar(&host.Root, "host-root", "/", "`directory` where the host's root file system is mounted")
	flags.StringVar(&host.Proc, "procfs", "/proc", "`directory` where the host's procfs is mounted")
	flags.StringVar(&host.Sys, "sysfs", "/sys", "`directory` where the host's sysfs is mounted")
}

func addNodeName(flags *pflag.FlagSet, name *string) {
	flags.StringVar(name, "node-name", defaultNodeName(), "`name` of the Node that this host is (default: $NODE_NAME, then the host name)")
	flags.Lookup("node-name").DefValue = ""
}

func defaultNodeName() string {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "" // refused by command.CheckNodeName
	}
	return strings.ToLower(name) // as the kubelet does
}
