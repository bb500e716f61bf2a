package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

const (
	// namedWithin is how soon a policy that fails is named everywhere.
	namedWithin = 30 * time.Second
	keepFails   = "the policy taintlet-keep fails: the node-lifecycle-controller removed " + memoryKey + ":NoSchedule; stand-ins are used until it works"
)

// A policy that is broken by a slip of the pen is named by check before any Node has a taint,
// and then by the Node's condition, an Event and status. Pods stay away by the own key, also
// after a restart. Once the policy is mended, the well-known key comes back. On the Node
// "alone" no other taint is left, so the API server does not know who removed this one.
func TestAKeepPolicyThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c, host := newCluster(t, cluster.Options{}), fixtures.NewHost(t)
	grantAgents(t.Context(), t, c)
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Register(t, "without") // an agent, for check to try the policy on
	names := []string{"alone", "beside"}
	agents, versions, nodes := map[string]*bed.Agent{}, map[string]*history{}, map[string]*cluster.Node{}
	for _, name := range names {
		nodes[name] = c.Register(t, name)
		if name == "beside" {
			c.SetTaints(t, name, dedicated)
		}
		versions[name] = follow(t, c, name)
		agents[name] = startAgent(t, c, name, host, quick+"heartbeat: 1m\n")
		versions[name].wait(0, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	}
	checks(t, c, check.OK, `^the policy taintlet-keep works: `)
	if err := c.BreakKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	checks(t, c, check.Failed, "^the policy taintlet-keep fails: ")

	host.Memory(2)
	ctx, cancel := context.WithTimeout(t.Context(), namedWithin)
	defer cancel()
	named := map[string]int{}
	for _, name := range names {
		at := versions[name].wait(0, tainted(memoryStandIn))
		named[name] = versions[name].wait(at, saysOf("HostMemoryPressure", describe.KeepFailing))
		c.WaitAgentEvent(t, name, "KeepPolicyFails", keepFails)
		agents[name].WaitMetric(`taintlet_contested{condition="MemoryPressure"} 1`)
	}
	found := problemOf(t, c, status.KeepPolicyFails)
	if !strings.HasPrefix(found.Text, keepFails) || !strings.HasSuffix(found.Text, "alone, beside") {
		t.Errorf("status says %+v", found)
	}
	if errors := c.RunKubectl(t, "get", "--raw=/metrics"); !regexp.MustCompile(`apiserver_mutating_admission_policy_check_total\{error_type="invalid_error",policy="taintlet-keep"`).MatchString(errors) {
		t.Error("the API server counts no error of the policy, as docs/troubleshooting.md says")
	}
	if err := ctx.Err(); err != nil {
		t.Errorf("named after more than %s: %v", namedWithin, err)
	}
	for _, name := range names {
		waitPod(t, c, createPod(t, c, "kept-away-"+name, name, ""), cluster.Unschedulable)
		agents[name].Kill()
		agents[name] = startAgent(t, c, name, host, quick+"heartbeat: 1m\n")
		agents[name].WaitLog("admission policy looked up")
		staysThroughUpdates(t, c, nodes[name], memoryStandIn, 3*time.Second)
		if all := versions[name].since(0); len(gone(all)) != 1 || events(t, c, name, "KeepPolicyFails") != 1 || events(t, c, name, "TaintContested") != 0 {
			t.Errorf("%s: lost more than once, or told something else; taints were\n%s", name, show(all))
		}
	}

	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		back := versions[name].wait(named[name], tainted(memoryKey))
		changesPlaces(t, versions[name].since(back-1), memoryStandIn, memoryKey)
		versions[name].wait(back, cluster.Not(saysOf("HostMemoryPressure", "taintlet-keep")))
		staysThroughUpdates(t, c, nodes[name], memoryKey, 3*time.Second)
	}
	checks(t, c, check.OK, `^the policy taintlet-keep works: `)
}

// saysOf tells whether the message of a condition has a text.
func saysOf(kind corev1.NodeConditionType, text string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		c := cluster.Condition(node, kind)
		return c != nil && strings.Contains(c.Message, text)
	}
}

// checks waits until kubectl taintlet check says that of the policy.
func checks(t *testing.T, c *cluster.Cluster, state status.Severity, pattern string) {
	t.Helper()
	cluster.Eventually(t, "check says "+string(state), func() error {
		var report check.Report
		runPlugin(t, c, &report, "check")
		for _, line := range report.Lines {
			if line.Name == "keep-effect" && (line.Severity != state || !regexp.MustCompile(pattern).MatchString(line.Text)) {
				return fmt.Errorf("it says %s: %s", line.Severity, line.Text)
			}
		}
		return nil
	})
}

// problemOf waits for a Finding of kubectl taintlet status.
func problemOf(t *testing.T, c *cluster.Cluster, kind status.Code) (found status.Finding) {
	t.Helper()
	cluster.Eventually(t, "status says "+string(kind), func() error {
		var report status.Report
		runPlugin(t, c, &report, "status")
		for _, p := range report.Findings {
			if p.Code == kind {
				found = p
				return nil
			}
		}
		return fmt.Errorf("it says %v", report.Findings)
	})
	return found
}

// runPlugin reads what kubectl taintlet prints as JSON.
func runPlugin(t *testing.T, c *cluster.Cluster, into any, verb string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), plugin.Path(t), verb, "-o=json", "--kubeconfig="+cluster.Kubeconfig(t, c.Admin())) //nolint:gosec // our own binary
	out, _ := command.Output()                                                                                                     // it fails while anything is wrong
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%s: %v: %s", verb, err, out)
	}
}
