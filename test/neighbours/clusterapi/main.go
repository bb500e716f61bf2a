// Command clusterapi runs the controller of Cluster API for MachineHealthChecks, and none of
// its other controllers. The files of the custom resources are in the module.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := index.AddDefaultIndexes(ctx, manager); err != nil {
		return err
	}
	one := controller.Options{MaxConcurrentReconciles: 1}
	cache, err := clustercache.SetupWithManager(ctx, manager, clustercache.Options{
		SecretClient: manager.GetAPIReader(),
		Client:       clustercache.ClientOptions{UserAgent: "machinehealthcheck"},
		Cache:        clustercache.CacheOptions{Indexes: []clustercache.CacheOptionsIndex{clustercache.NodeProviderIDIndex}},
	}, one)
	if err != nil {
		return err
	}
	if err := (&machinehealthcheck.Reconciler{Client: manager.GetClient(), ClusterCache: cache}).SetupWithManager(ctx, manager, one); err != nil {
		return err
	}
	return manager.Start(ctx)
}
