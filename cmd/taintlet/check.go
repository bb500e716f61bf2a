package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/check"
)

func checkVerb() verb {
	return verb{
		name:    "check",
		summary: "check an installation, or with --pre whether there can be one",
		about: `It asks the API server and changes nothing: writes are dry runs. Some checks impersonate the agents'
account, and one asks for a short-lived token.

√ is good, ‼ works but could be better, × has to be mended. - could not be checked, for the reason
given. Each × and ‼ says what to do and where that is explained.`,
		examples: []example{
			{"Can taintlet be installed here?", "taintlet check --pre"},
			{"The same with another port for the agents", "taintlet check --pre --port=14808"},
			{"Is it installed well?", "taintlet check"},
			{"Elsewhere than in taintlet-system", "taintlet check --namespace=monitoring"},
		},
		notWell: "a check failed",
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			var o check.Options
			var cluster clusterFlags
			flags.BoolVar(&o.Pre, "pre", false, "check before an installation")
			flags.IntVar(&o.Port, "port", check.DefaultPort, "`port` of the hosts where the agents are to listen, for --pre; 1 to 65535")
			flags.StringVarP(&o.Namespace, "namespace", "n", "taintlet-system", "namespace of the agents")
			addChoice(flags, &o.Output, "output", "o", "text or json", "text", "json")
			cluster.add(flags)
			return func(ctx context.Context, c call) (err error) {
				if o.Port < 1 || o.Port > 65535 {
					return usageError{fmt.Errorf("--port %d: must be between 1 and 65535", o.Port)}
				}
				if o.Config, err = cluster.restConfig(); err != nil {
					return err
				}
				o.Out = c.stdout
				isWell, err := check.Run(ctx, o)
				if err == nil && !isWell {
					return errNotWell
				}
				return err
			}
		},
	}
}
