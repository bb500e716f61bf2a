package installation

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// requestRate is how many requests a second are made.
	requestRate = 50
	// maxAnswer bounds a page, in bytes: a pod has some 10 KB.
	maxAnswer = 64 << 20
)

// Client asks the API server.
type Client struct {
	*kubernetes.Clientset
	// Dynamic is for objects whose kind a caller chooses.
	Dynamic dynamic.Interface
}

// NewClient returns a Client.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestRate, requestRate
	apiserver.Bound(config, maxAnswer)
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	return &Client{typed, untyped}, err
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

// Labelled selects what the chart installs.
func Labelled() metav1.ListOptions { return metav1.ListOptions{LabelSelector: Label} }
