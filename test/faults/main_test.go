// Package faults runs the agent as a process against a real control plane through a proxy
// that loses, delays, refuses and falsifies requests, kills and stops the agent, and judges
// every version of its Node: nothing is lost, nothing of others is wiped, nobody is evicted
// without leave, and the Node ends with the right taints.
package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	clearAfter     = 500 * time.Millisecond
	criticalAfter  = time.Second
	budgetBurst    = 3
	budgetInterval = time.Second

	// inParallel is how many Nodes are under faults at a time: they wait more than they
	// compute.
	inParallel = 16
)

// configuration is quick enough for a seed to take seconds.
const configuration = bed.ConfigHeader + `
memory: {period: 500ms, debounce: {clearAfter: 500ms, maxClearAfter: 500ms}}
disk: {period: 500ms, debounce: {clearAfter: 500ms, maxClearAfter: 500ms}, writeProbe: {directory: /var/lib/kubelet}}
pid: {period: 250ms, debounce: {clearAfter: 500ms, maxClearAfter: 500ms, criticalAfter: 1s}}
writeBudget: {interval: 1s}
eviction: {slots: 1, cooldown: 5s, interval: 0s}
rules:
- {condition: PIDPressure, level: Degraded, taint: {key: example.com/pids, effect: NoSchedule}}
- {condition: PIDPressure, level: Critical, taint: {key: example.com/pids, effect: NoExecute}}
`

// refusal is a policy that refuses the agents' writes to a Node with refuseAnnotation.
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refusal}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes, nodes/status]}
  matchConditions:
  - {name: agents, expression: 'request.userInfo.username.startsWith("system:serviceaccount:berth-")'}
  validations:
  - {expression: '!has(oldObject.metadata.annotations) || !("example.com/refuse" in oldObject.metadata.annotations)', message: a fault of the test}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refusal}
spec: {policyName: refusal, validationActions: [Deny]}
`

var (
	shared  = cluster.Shared{Options: cluster.Options{WithoutScheduler: true}}
	program = process.SharedProgram{Build: buildAgent, Options: process.BuildOptions{Release: true}}
	berths  = make(chan string, inParallel)
	install sync.Once
	hooks   = webhook{judges: map[string]*judge{}, seen: reached.befell} // of all scenes
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", fmt.Sprint(inParallel)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := shared.Run(m)
	program.Remove()
	hooks.close()
	os.Exit(code)
}

// require returns the control plane, with the rules of the chart in as many namespaces as
// there are Nodes at a time. Each has a slot of its own.
func require(t *testing.T) *cluster.Cluster {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	c := shared.Require(t)
	install.Do(func() {
		rules := append(config.Default().Rules,
			decide.Rule{Condition: probes.PIDPressure, Level: probes.Degraded, Taint: decide.Taint{Key: "example.com/pids", Effect: taints.NoSchedule}},
			decide.Rule{Condition: probes.PIDPressure, Level: probes.Critical, Taint: decide.Taint{Key: "example.com/pids", Effect: taints.NoExecute}})
		ctx := context.WithoutCancel(t.Context())
		for i := range inParallel {
			berth := fmt.Sprint("berth-", i)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: berth}}
			if _, err := c.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			bed.InstallRules(ctx, t, c, bed.ChartFolder, berth, map[string]any{"config": map[string]any{"rules": rules}, "evict": map[string]any{"slots": 1}})
			berths <- berth
		}
		bed.Apply(ctx, t, c, refusal)
		hooks.install(ctx, t, c)
	})
	return c
}
