// Package inuse reads the configuration that the agents of a cluster use.
package inuse

import (
	"context"
	"fmt"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// RefusedError says that the agents refuse their configuration, and why. They go on
// with the last one that was valid; agents that start do not come up.
type RefusedError struct{ Err error }

// Error says why.
func (e RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e RefusedError) Unwrap() error { return e.Err }

// Read reads the agents' configuration from the ConfigMap in their namespace. Where
// that has none the error is a NotFound of the API server, and where the agents refuse
// it a RefusedError. A release of the agents that differs from this program may refuse
// other fields.
func Read(ctx context.Context, client *apiserver.Client, namespace string) (*config.Config, error) {
	text, err := client.ConfigFile(ctx, namespace, installation.Account, installation.ConfigKey)
	if err != nil {
		return nil, err
	}
	cfg, err := config.HostSchema().Decode(text)
	if err != nil {
		return nil, RefusedError{fmt.Errorf("ConfigMap %s/%s: %w", namespace, installation.Account, err)}
	}
	return cfg, nil
}
