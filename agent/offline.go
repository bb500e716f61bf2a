package agent

import (
	"context"
	"log/slog"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// Offline is a Node in memory, for --dry-run=client: every change is logged
// and made there, so that the agent goes on as it would in a cluster.
type Offline struct {
	name string
	log  *slog.Logger
}

// NewOffline returns a Node of that name without any taint.
func NewOffline(name string, log *slog.Logger) *Offline { return &Offline{name, log} }

// Watch sends the Node once. All later versions are answers of Apply.
func (o *Offline) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	node := &taints.Node{Name: o.name, UID: "dry-run", ResourceVersion: "1"}
	select {
	case nodes <- node:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// Apply logs the change and makes it in memory.
func (o *Offline) Apply(_ context.Context, base *taints.Node, change taints.Change) (*taints.Node, error) {
	after := change.ApplyTo(base)
	version, err := strconv.ParseUint(base.ResourceVersion, 10, 64)
	if err != nil {
		return base, err
	}
	after.ResourceVersion = strconv.FormatUint(version+1, 10)
	if _, differs := change.Differs(base); differs {
		o.log.Info("dry run: would patch the node", "taints", describe(after.Taints), "annotations", change.Annotations)
	}
	for _, c := range change.Conditions {
		o.log.Info("dry run: would set the node condition", "type", c.Type, "status", string(c.Status), "reason", c.Reason, "message", c.Message)
	}
	return after, nil
}

// Announce logs what the Event would say.
func (o *Offline) Announce(_ context.Context, _ *taints.Node, reason, message string) error {
	o.log.Info("dry run: would write an event", "type", corev1.EventTypeWarning, "reason", reason, "message", message)
	return nil
}

// KeepPolicyPresent is true: the run shows what a complete installation does.
func (o *Offline) KeepPolicyPresent(context.Context) (bool, error) {
	o.log.Info("dry run: assuming that the admission policy " + taints.KeepPolicyName + " is installed")
	return true, nil
}
