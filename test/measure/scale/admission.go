package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// admissionTries is how often each write is timed.
const admissionTries = 200

// admission times writes of an agent, which the policies judge, beside the same of
// an administrator, whom no policy matches. They are dry runs, in turn.
func (r *run) admission(ctx context.Context) error {
	agent, err := kubernetes.NewForConfig(r.setup.as(r.setup.Tokens[r.nodes[0]]))
	if err != nil {
		return err
	}
	taint := `{"spec":{"taints":[{"key":"node.kubernetes.io/memory-pressure","effect":"NoSchedule"}]},"metadata":{"annotations":{"taintlet.dev/held":"node.kubernetes.io/memory-pressure"}}}`
	heartbeat := `{"status":{"conditions":[{"type":"HostMemoryPressure","status":"False","reason":"Enough","lastHeartbeatTime":"2026-01-02T03:04:05Z"}]}}`
	for _, write := range []struct {
		name string
		kind types.PatchType
		body string
		part []string
	}{
		{"patch nodes", types.MergePatchType, taint, nil},
		{"patch nodes/status", types.StrategicMergePatchType, heartbeat, []string{"status"}},
	} {
		medians, err := r.timed(ctx, write.kind, write.body, write.part, agent, r.cluster.Client())
		if err != nil {
			return fmt.Errorf("%s: %w", write.name, err)
		}
		for i, who := range []string{"an agent", "an administrator"} {
			r.f.Admission[fmt.Sprintf("%s by %s, dry run, median of %d", write.name, who, admissionTries)] = medians[i]
		}
	}
	return nil
}

// timed returns how long a patch of the first Node takes each client, in ms: the medians of
// dry runs, which the clients make in turn.
func (r *run) timed(ctx context.Context, kind types.PatchType, body string, part []string, clients ...kubernetes.Interface) ([]float64, error) {
	took := make([][]time.Duration, len(clients))
	for range admissionTries {
		for i, client := range clients {
			begin := time.Now()
			_, err := client.CoreV1().Nodes().Patch(ctx, r.nodes[0], kind, []byte(body), metav1.PatchOptions{FieldManager: "taintlet", DryRun: []string{metav1.DryRunAll}}, part...)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	var medians []float64
	for _, all := range took {
		slices.Sort(all)
		medians = append(medians, float64(all[len(all)/2].Microseconds())/1000)
	}
	return medians, nil
}
