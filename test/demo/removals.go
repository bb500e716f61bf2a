package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
)

// countRemovals counts, by the API server's audit log, how often the controller
// manager asked for the removal of the taint and was told that it is done.
func (d *demo) countRemovals() (int, error) {
	requests, err := d.cluster.Requests("system:serviceaccount:kube-system:node-controller")
	if err != nil {
		return 0, err
	}
	count := 0
	for _, r := range requests {
		if removesTaint(r, d.nodeName) {
			count++
		}
	}
	return count, nil
}

// waitRemovals waits until there have been that many. A log file tells nobody that
// it grew, so it is read again and again.
func (d *demo) waitRemovals(ctx context.Context, count int) error {
	for {
		if now, err := d.countRemovals(); err != nil || now >= count {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// removesTaint says whether the request wrote a list of taints without ours and
// was answered 200.
func removesTaint(r cluster.Request, node string) bool {
	if r.Verb != "patch" || r.Resource() != "nodes" || r.ObjectRef.Name != node || r.ResponseStatus.Code != http.StatusOK {
		return false
	}
	var patch struct {
		Spec struct {
			// Taints is nil when the patch does not speak of them; one that
			// removes them all says null.
			Taints json.RawMessage `json:"taints"`
		} `json:"spec"`
	}
	var wanted []corev1.Taint
	if json.Unmarshal(r.RequestObject, &patch) != nil || patch.Spec.Taints == nil || json.Unmarshal(patch.Spec.Taints, &wanted) != nil {
		return false
	}
	return !slices.ContainsFunc(wanted, func(t corev1.Taint) bool { return t.Key == memoryTaint })
}
