package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
)

func checkVerb() *cobra.Command {
	var o check.Options
	var cluster command.Cluster
	var timeout time.Duration
	c := &cobra.Command{
		Use: "check", Short: "Check an installation, or with --pre the requirements", Args: cobra.NoArgs,
		Long: `Check an installation, or with --pre the requirements.

It changes nothing: writes are dry runs. Some checks impersonate the agents' account.

√ means good, ‼ works but could be better, × must be fixed, and - could not be checked. Below each × and ‼
are a remedy and a link to the documentation.

Exit code 3: a check failed. Exit code 1: the API server does not answer or refuses you.`,
		Example: `  # Can taintlet be installed here?
  kubectl taintlet check --pre
  # Can it be installed with another port?
  kubectl taintlet check --pre --port=14808
  # Does the installation work?
  kubectl taintlet check
  # In a script, after an installation or an upgrade
  kubectl taintlet check --wait --timeout=5m
  # In another namespace
  kubectl taintlet check --namespace=monitoring`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Port < 1 || o.Port > 65535 {
				return command.Usagef("--port %d: must be between 1 and 65535", o.Port)
			}
			if o.Config, err = cluster.RestConfig(); err != nil {
				return err
			}
			o.Namespace, o.Out, o.Err, o.Version = cluster.Namespace, c.OutOrStdout(), c.ErrOrStderr(), command.Version()
			ctx, cancel := command.Within(c.Context(), timeout)
			defer cancel()
			isWell, err := check.Run(ctx, o)
			if err == nil && !isWell {
				return command.ErrNotWell
			}
			return err
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.Pre, "pre", false, "check the requirements before an installation")
	flags.IntVar(&o.Port, "port", installation.DefaultPort, "`port` on which the agents will listen; only with --pre")
	flags.BoolVar(&o.Wait, "wait", false, "repeat the checks until nothing fails and all agents run with the newest configuration")
	flags.DurationVar(&timeout, "timeout", 0, "how long to wait with --wait (default: no limit)")
	command.AddChoice(c, &o.Output, "output", "o", "output format: text, or json, yaml or jsonpath=TEMPLATE as in kubectl", append([]string{"text"}, status.Formats()...)...)
	cluster.Add(flags)
	return c
}
