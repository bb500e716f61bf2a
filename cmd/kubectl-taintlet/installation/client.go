package installation

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/spf13/cobra"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// requestRate is how many requests a second are made.
	requestRate = 50
	// maxAnswer bounds a page, in bytes. A pod has about 10 KB.
	maxAnswer = 64 << 20
)

// Client asks the API server.
type Client struct {
	*kubernetes.Clientset
	// Dynamic is for objects whose kind a caller chooses.
	Dynamic dynamic.Interface
	// Metadata is for the names of objects.
	Metadata metadata.Interface
	// granted is the namespace whose agents have all permissions that they need; empty: none is known.
	granted string
	// ahead is how far the API server's clock is ahead of this machine's, in nanoseconds.
	ahead *atomic.Int64
}

// NewClient returns a Client.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestRate, requestRate
	apiserver.Bound(config, maxAnswer)
	ahead := &atomic.Int64{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
					ahead.Store(int64(time.Until(date)))
				}
			}
			return response, err
		})
	})
	typed, errTyped := kubernetes.NewForConfig(config)
	untyped, errUntyped := dynamic.NewForConfig(config)
	names, errNames := metadata.NewForConfig(config)
	if err := cmp.Or(errTyped, errUntyped, errNames); err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	return &Client{Clientset: typed, Dynamic: untyped, Metadata: names, ahead: ahead}, nil
}

// Connect returns a Client of the cluster that the flags mean.
func Connect(cluster *command.Cluster) (*Client, error) {
	restConfig, err := cluster.RestConfig()
	if err != nil {
		return nil, err
	}
	return NewClient(restConfig)
}

// completeWithin is how long a shell waits for names.
const completeWithin = 3 * time.Second

// CompleteNodes completes the names of Nodes of the cluster that the flags mean.
func CompleteNodes(cluster *command.Cluster) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		client, err := Connect(cluster)
		if err == nil {
			err = client.EachNode(ctx, nil, "", func(node *taints.Node) {
				if strings.HasPrefix(node.Name, typed) && !slices.Contains(args, node.Name) {
					names = append(names, terminal.Clean(node.Name, 2*validation.DNS1123SubdomainMaxLength))
				}
			})
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip makes the request.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// maxUnheeded is a difference of clocks that whole seconds and a slow answer explain.
const maxUnheeded = 5 * time.Second

// Now is the time of the API server, by which the Nodes' last signs are judged. The clock of the
// operator's machine may be wrong.
func (c *Client) Now() time.Time {
	if ahead := time.Duration(c.ahead.Load()); ahead.Abs() > maxUnheeded {
		return time.Now().Add(ahead)
	}
	return time.Now()
}

// MutatingPolicies is a resource of deploy/keep.yaml.
const MutatingPolicies = "mutatingadmissionpolicies"

// policyVersions returns the version of admissionregistration.k8s.io in which the API server
// serves each resource of that group. Kubernetes 1.34 and 1.35 serve MutatingAdmissionPolicy as
// v1beta1, where it is switched on.
func (c *Client) policyVersions(ctx context.Context) (map[string]schema.GroupVersion, error) {
	served := map[string]schema.GroupVersion{}
	for _, version := range []schema.GroupVersion{admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion} {
		list, err := c.Discovery().ServerResourcesForGroupVersionWithContext(ctx, version.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", version, err)
		}
		for _, r := range list.APIResources {
			served[r.Name] = version
		}
	}
	return served, nil
}

// Each calls do with each object of a list, which it reads page by page.
func Each[T, L runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), options metav1.ListOptions, do func(T)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	})
	pages.PageBufferSize = 0
	return pages.EachListItem(ctx, options, func(object runtime.Object) error {
		do(object.(T)) //nolint:forcetypeassert // the list has no others
		return nil
	})
}

// List returns all objects of a list, which it reads page by page.
func List[T, L runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), options metav1.ListOptions) (all []T, err error) {
	err = Each(ctx, list, options, func(object T) { all = append(all, object) })
	return all, err
}

// EachNode calls do with each named Node, or without names with each that the selector of labels
// chooses; an empty one: all.
func (c *Client) EachNode(ctx context.Context, names []string, selector string, do func(*taints.Node)) error {
	if len(names) == 0 {
		err := Each(ctx, c.CoreV1().Nodes().List, metav1.ListOptions{LabelSelector: selector}, func(node *corev1.Node) { do(apiserver.NodeOf(node)) })
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
	}
	for _, name := range names {
		node, err := c.Node(ctx, name)
		if err != nil {
			return err
		}
		do(node)
	}
	return nil
}

// Node reads a Node.
func (c *Client) Node(ctx context.Context, name string) (*taints.Node, error) {
	node, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Node %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("get node %s: %w", name, err)
	}
	return apiserver.NodeOf(node), nil
}

// Labelled selects the objects of the chart.
func Labelled() metav1.ListOptions { return metav1.ListOptions{LabelSelector: Label} }

// User is what a service account is to the API server: a user with groups.
func User(namespace, account string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}
