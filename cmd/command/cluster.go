package command

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

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

// RestConfig finds the cluster as kubectl does.
func (f *Cluster) RestConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = f.as, f.asGroups
	restConfig, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is known: give --kubeconfig, set KUBECONFIG, or run in a pod")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	restConfig.UserAgent = UserAgent()
	return restConfig, nil
}
