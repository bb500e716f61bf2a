package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"
)

func versionVerb() verb {
	return verb{
		name:     "version",
		summary:  "print the version",
		examples: []example{{"Which version is this?", "taintlet version"}},
		bind: func(*pflag.FlagSet) func(context.Context, call) error {
			return func(_ context.Context, c call) error {
				_, err := fmt.Fprintln(c.stdout, "taintlet", buildVersion())
				return err
			}
		},
	}
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

// userAgent is how this program names itself to an API server, in its audit log.
func userAgent() string {
	return fmt.Sprintf("taintlet/%s (%s/%s)", buildVersion(), runtime.GOOS, runtime.GOARCH)
}
