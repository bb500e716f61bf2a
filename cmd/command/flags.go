package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/taintlet/taintlet/agent/config"
)

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

// AddNamespace declares the flag that says where the agents are.
func AddNamespace(flags *pflag.FlagSet, namespace *string) {
	flags.StringVarP(namespace, "namespace", "n", DefaultNamespace, "namespace of the agents")
}

// AddLifecycleController declares the flag that says who else owns taints.
func AddLifecycleController(flags *pflag.FlagSet, present *bool) {
	flags.BoolVar(present, "lifecycle-controller", true, "the cluster runs a node-lifecycle-controller")
}

// choicesOf is the annotation of a flag with the values that it may have.
const choicesOf = "choices"

// AddChoice declares a flag that has one of some values; the first is the default. A value
// that ends in = takes an argument.
func AddChoice(c *cobra.Command, value *string, name, shorthand, usage string, allowed ...string) {
	c.Flags().StringVarP(value, name, shorthand, allowed[0], usage)
	if err := errors.Join(
		c.Flags().SetAnnotation(name, choicesOf, allowed),
		c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)),
	); err != nil {
		panic(err) // the flag was declared just before
	}
}

// checkChoices reports all flags whose value is none of those that are allowed.
func checkChoices(c *cobra.Command) error {
	var errs []error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		allowed := f.Annotations[choicesOf]
		fits := func(choice string) bool { // one that ends in = takes an argument
			return f.Value.String() == choice || strings.HasSuffix(choice, "=") && strings.HasPrefix(f.Value.String(), choice)
		}
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, fits) {
			errs = append(errs, Usagef("--%s %q: must be one of %s", f.Name, f.Value, strings.Join(allowed, ", ")))
		}
	})
	return errors.Join(errs...)
}

// CheckNodeName refuses a name that no Node can have. from says where it comes from.
func CheckNodeName(from, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 { // its errors are regular expressions
		return Usagef("%s %q: the name of a Node has lower-case letters, digits, - and . only, begins and ends with a letter or a digit, and has at most %d letters", from, name, validation.DNS1123SubdomainMaxLength)
	}
	return nil
}

// Cluster is the flags that say which cluster is meant by a verb that people run.
type Cluster struct {
	kubeconfig, context, as string
	asGroups                []string
}

// Add declares the flags.
func (f *Cluster) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, then ~/.kube/config, then the pod's service account)")
	flags.StringVar(&f.context, "context", "", "`name` of the context in the kubeconfig (default: the current context)")
	flags.StringVar(&f.as, "as", "", "`user` to impersonate, as kubectl does")
	flags.StringArrayVar(&f.asGroups, "as-group", nil, "`group` to impersonate with --as; can be repeated")
}

// ErrNoCluster is returned where nothing says which cluster is meant.
var ErrNoCluster = errors.New("no cluster is known: give --kubeconfig, set KUBECONFIG, or run in a pod")

// RestConfig finds the cluster as kubectl does.
func (f *Cluster) RestConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = f.as, f.asGroups
	restConfig, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	restConfig.UserAgent = UserAgent()
	return restConfig, nil
}
