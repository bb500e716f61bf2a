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
		took := map[string][]time.Duration{}
		for range admissionTries {
			for who, client := range map[string]kubernetes.Interface{"an agent": agent, "an administrator": r.cluster.Client()} {
				begin := time.Now()
				_, err := client.CoreV1().Nodes().Patch(ctx, r.nodes[0], write.kind, []byte(write.body),
					metav1.PatchOptions{FieldManager: "taintlet", DryRun: []string{metav1.DryRunAll}}, write.part...)
				if err != nil {
					return fmt.Errorf("%s as %s: %w", write.name, who, err)
				}
				took[who] = append(took[who], time.Since(begin))
			}
		}
		for who, all := range took {
			slices.Sort(all)
			r.f.Admission[fmt.Sprintf("%s by %s, dry run, median of %d", write.name, who, admissionTries)] = float64(all[len(all)/2].Microseconds()) / 1000
		}
	}
	return nil
}
