package network

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed/fleet"
	"github.com/taintlet/taintlet/test/cluster"
)

// A threshold of memory that every host is below. Less than 40 % of the hosts get
// the taint; the others wait and say so. When the threshold is right again, all
// are free.
func TestWrongThreshold(t *testing.T) {
	onlyLong(t)
	s := require(t)
	const right, wrong = "memory: {availablePercent: 5, debounce: {clearAfter: 2s}}\n", "memory: {availablePercent: 60, debounce: {clearAfter: 2s}}\n"
	agents := s.Start(t, hosts, right)
	s.WaitKnown(t, hosts)
	fleet.WaitSamples(t, agents, 2) // each has heard its peers
	for _, a := range agents {
		a.Reconfigure(func(config string) string { return strings.Replace(config, right, wrong, 1) })
	}
	most := 0
	s.eventually(t, "a decision of each agent", &most, func(tainted, braked int) bool { return tainted+braked == hosts })
	// They stay as they are while the threshold is wrong.
	fleet.WaitSamples(t, agents, 4)
	s.eventually(t, "the same a while later", &most, func(tainted, braked int) bool { return tainted+braked == hosts })
	t.Logf("at most %d of %d Nodes were tainted", most, hosts)
	if 5*most >= 2*hosts {
		t.Errorf("%d of %d Nodes were tainted", most, hosts)
	}
	node := s.braked(t)
	s.Cluster.WaitAgentEvent(t, node, "TaintBraked", "fleet brake")
	described := regexp.MustCompile(`\d+ of \d+ peers|configuration \w+ is in force.*`).ReplaceAllString(s.Cluster.Describe(t, node), "…")
	// What the other conditions say depends on this machine, and is not what this is about.
	cluster.Golden(t, "describe-braked.txt", regexp.MustCompile(`(?m)^  Host(Disk|Network).*\n`).ReplaceAllString(described, ""))
	for _, a := range agents {
		a.Reconfigure(func(config string) string { return strings.Replace(config, wrong, right, 1) })
	}
	s.eventually(t, "all to be free", &most, func(tainted, braked int) bool { return tainted+braked == 0 })
}

// eventually waits until it holds for how many Nodes have the taint of memory, and
// how many hold it back. It keeps the most that had the taint.
func (s scene) eventually(t *testing.T, what string, most *int, holds func(tainted, braked int) bool) {
	t.Helper()
	began := time.Now()
	cluster.Eventually(t, what, func() error {
		nodes, err := s.Cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		tainted, braked := 0, 0
		for i := range nodes.Items {
			switch {
			case cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)(&nodes.Items[i]),
				cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule)(&nodes.Items[i]):
				tainted++
			case isBraked(&nodes.Items[i]):
				braked++
			}
		}
		*most = max(*most, tainted)
		if !holds(tainted, braked) {
			return fmt.Errorf("%d tainted, %d held back", tainted, braked)
		}
		t.Logf("%s after %.0f s: %d tainted, %d held back", what, time.Since(began).Seconds(), tainted, braked)
		return nil
	})
}

func isBraked(node *corev1.Node) bool {
	c := cluster.Condition(node, "HostMemoryPressure")
	return c != nil && c.Status == corev1.ConditionUnknown && c.Reason == "FleetBrake"
}

// braked returns the name of a Node that holds its taint back.
func (s scene) braked(t *testing.T) string {
	t.Helper()
	nodes, err := s.Cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if isBraked(&nodes.Items[i]) {
			return nodes.Items[i].Name
		}
	}
	t.Fatal("no Node holds its taint back")
	return ""
}
