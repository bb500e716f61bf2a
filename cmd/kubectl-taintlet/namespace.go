package main

import "github.com/spf13/pflag"

// defaultNamespace is where the documentation installs the agents.
const defaultNamespace = "taintlet-system"

// addNamespace declares the flag that says where the agents are.
func addNamespace(flags *pflag.FlagSet, namespace *string) {
	flags.StringVarP(namespace, "namespace", "n", defaultNamespace, "namespace of the agents")
}
