// Package command is shared by the command lines of taintlet and kubectl-taintlet: exit codes,
// errors, flags, and how they find a cluster.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/terminal"
)

const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitNotWell = 3
)

// ErrNotWell ends a verb that has already printed what is not healthy.
var ErrNotWell = errors.New("not everything is healthy")

// UsageError is a mistake in the arguments or in the configuration.
type UsageError struct{ error }

// Usagef returns a UsageError with that text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Unwrap returns the error that the flags or arguments have.
func (e UsageError) Unwrap() error { return e.error }

// Run runs the verb of the arguments until it ends or a signal arrives, and returns the exit code:
// 0, 2 for a UsageError, 3 for ErrNotWell, and 1 for any other error.
func Run(program *cobra.Command, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = &terminal.Writer{W: stdout}, &terminal.Writer{W: stderr}
	program.SilenceErrors, program.SilenceUsage = true, true
	program.InitDefaultCompletionCmd(args...)
	if completion, _, err := program.Find([]string{"completion"}); err == nil { // help is no completion
		completion.Args, completion.RunE = cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	program.Version = Version()
	program.Flags().Bool("version", false, "print the version")
	hasBegun := false // what is wrong before that are the arguments
	program.PersistentPreRun = func(*cobra.Command, []string) { hasBegun = true }
	program.SetArgs(args)
	program.SetOut(stdout)
	program.SetErr(stderr)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	verb, err := program.ExecuteContextC(ctx)
	var usage UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, ErrNotWell):
		return exitNotWell
	case !hasBegun, errors.As(err, &usage):
		fmt.Fprintf(stderr, "taintlet: %s\nSee %s.\n", shortened(err), strings.Replace(verb.CommandPath(), program.DisplayName(), program.DisplayName()+" help", 1))
		return exitUsage
	}
	fmt.Fprintf(stderr, "taintlet: %s\n", shortened(err))
	return exitFailure
}

// maxError is the longest error that is printed, in bytes. Parts of an error come from files and
// other programs.
const maxError = 8 << 10

// shortened returns the text of an error, cut to maxError. It indents all lines but the first, so
// that no part of an error looks like a separate message.
func shortened(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n\n", "\n")
	return strings.ReplaceAll(terminal.Cut(text, maxError), "\n", "\n  ")
}

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

// AddConfig declares the flag that names a configuration file.
func AddConfig(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "config", "", "TaintletConfiguration `file` (default: the built-in configuration)")
}

// LoadConfig reads that file.
func LoadConfig(path string) (*config.Config, error) {
	cfg, err := config.HostSchema().Load(path)
	if err != nil {
		return nil, UsageError{err}
	}
	return cfg, nil
}

// DefaultNamespace is where the documentation installs the agents.
const DefaultNamespace = "taintlet-system"

// AddChoice declares a flag that has one of some values; the first is the default. A value
// that ends in = takes an argument.
func AddChoice(c *cobra.Command, value *string, name, shorthand, usage string, allowed ...string) {
	*value = allowed[0]
	c.Flags().FuncP(name, shorthand, fmt.Sprintf("%s (default %q)", usage, *value), func(text string) error {
		for _, fits := range allowed {
			if text == fits || strings.HasSuffix(fits, "=") && strings.HasPrefix(text, fits) {
				*value = text
				return nil
			}
		}
		return fmt.Errorf("must be one of %s", strings.Join(allowed, ", "))
	})
	if err := c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was declared just before
	}
}

// CheckNodeName refuses a name that no Node can have. from says where it comes from.
func CheckNodeName(from, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 { // its errors are regular expressions
		return Usagef("%s %q: the name of a Node has lower-case letters, digits, - and . only, begins and ends with a letter or a digit, and has at most %d letters", from, name, validation.DNS1123SubdomainMaxLength)
	}
	return nil
}

// NodeNames refuses arguments that cannot be names of Nodes.
func NodeNames(_ *cobra.Command, args []string) error {
	for _, name := range args {
		if err := CheckNodeName("node", name); err != nil {
			return err
		}
	}
	return nil
}

// Cluster has the flags that choose the cluster, and the installation in it, for a verb of
// kubectl-taintlet.
type Cluster struct {
	// Namespace is that of the agents.
	Namespace string

	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// Add declares the flags: kubectl's own of a connection, of which the help shows the common ones.
// All flags are shown in the order in which they were declared.
func (f *Cluster) Add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&f.Namespace, "namespace", "n", DefaultNamespace, "namespace of the agents")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, then ~/.kube/config, then the pod's service account)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&f.overrides, connection, names)
	shown := map[string]string{
		clientcmd.FlagContext:          "`name` of the context in the kubeconfig (default: the current context)",
		clientcmd.FlagImpersonate:      "`user` to impersonate, as kubectl does",
		clientcmd.FlagImpersonateGroup: "`group` to impersonate with --as; repeat the flag for several groups",
	}
	connection.VisitAll(func(flag *pflag.Flag) {
		flag.Usage, flag.Hidden = cmp.Or(shown[flag.Name], flag.Usage), shown[flag.Name] == ""
	})
	flags.AddFlagSet(connection)
}

// Within returns a context for a verb that waits no longer than that; 0: there is no limit.
func Within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if most == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, most)
}

// ErrNoCluster is returned where nothing says which cluster is meant.
var ErrNoCluster = errors.New("no cluster is configured: use --kubeconfig, set KUBECONFIG, or run in a pod")

// RestConfig finds the cluster as kubectl does.
func (f *Cluster) RestConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	restConfig, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	restConfig.UserAgent = UserAgent()
	return restConfig, nil
}
