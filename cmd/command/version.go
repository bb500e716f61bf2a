package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X and the path of this package) where the build
// sees no repository: in the image.
var version string

// Version is the version of this build; "(devel)" where it is not known.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// UserAgent is how this program names itself to an API server, in its audit log.
func UserAgent() string {
	return fmt.Sprintf("taintlet/%s (%s/%s)", Version(), runtime.GOOS, runtime.GOARCH)
}

// versionVerb prints the version of a program.
func versionVerb(program string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: NoArguments,
		Example: "  # Which version is this?\n  " + program + " version",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "taintlet", Version())
			return err
		},
	}
}
