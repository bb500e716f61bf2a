package kubelet_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
)

// nodeName leads to the kubelet, which listens on loopback: the API server asks
// it by name for the logs of pods.
const nodeName = "localhost"

// TestSharedPair runs taintlet beside a real kubelet and the real lifecycle
// controller, with deploy/keep.yaml: both want the same pair, each at its own
// time. It checks every version of the Node.
func TestSharedPair(t *testing.T) {
	requireKubelet(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := cluster.New(t, cluster.Options{WithoutScheduler: true, Args: map[string][]string{
		// The kubelet is missed after ten of its heartbeats.
		cluster.ControllerManager: {"--node-monitor-grace-period=10s", "--node-monitor-period=1s"},
	}})
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	k, err := kubelet.Start(t.Context(), c, kubelet.Options{
		NodeName:                         nodeName,
		EvictionHard:                     map[string]string{"nodefs.available": kubeletThreshold},
		EvictionPressureTransitionPeriod: 5 * time.Second,
		NodeStatusUpdateFrequency:        time.Second,
		Progress:                         os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.Tail(20))
		}
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})
	setForeignTaints(t, c)
	startAgent(t, c, k, agentConfig)
	if _, err := c.WaitNode(t.Context(), nodeName, cluster.HasCondition("HostDiskPressure", corev1.ConditionFalse)); err != nil {
		t.Fatal(err)
	}
	keepCompany(t, c)
	for _, test := range []struct {
		name string
		run  func(*story, *disk)
	}{
		{"the kubelet clears first", kubeletClearsFirst},
		{"taintlet clears first", taintletClearsFirst},
		{"the kubelet dies and comes back", kubeletDies},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(follow(t, c), newDisk(t, k)) })
	}
}

func kubeletClearsFirst(s *story, d *disk) {
	d.takeInodes()
	s.until("taintlet holds the pair", held)
	s.stays = true
	d.takeSpace(spacePercent)
	s.until("the kubelet is under pressure", diskPressure(corev1.ConditionTrue))
	// The pair becomes the controller's, and taintlet takes it over.
	d.giveInodes()
	s.until("taintlet is fine", cluster.Not(held))
	s.untilControllerWorked()
	d.takeInodes()
	s.until("taintlet holds the pair again", held)
	s.untilControllerWorked()
	d.giveSpace()
	s.until("the kubelet is fine", diskPressure(corev1.ConditionFalse))
	s.untilControllerWorked() // and would take the pair away
	s.stays = false
	d.giveInodes()
	s.until("the pair is gone", cluster.Not(tainted))
	if held(s.last) {
		s.t.Errorf("the pair is gone and held: %s", brief(s.last))
	}
	if writer := apiserver.NodeOf(s.last).LastWriter; writer != "" { // somebody else than taintlet
		s.t.Errorf("the pair was removed by %q and not by taintlet", writer)
	}
}

func taintletClearsFirst(s *story, d *disk) {
	d.takeInodes()
	s.until("taintlet holds the pair", held)
	s.stays = true
	d.takeSpace(spacePercent)
	s.until("the kubelet is under pressure", diskPressure(corev1.ConditionTrue))
	s.untilControllerWorked()
	d.giveInodes()
	s.until("taintlet is fine", cluster.Not(held))
	s.untilControllerWorked() // and has the pair for its own
	s.stays = false
	d.giveSpace()
	s.until("the kubelet is fine", diskPressure(corev1.ConditionFalse))
	s.until("the pair is gone", cluster.Not(tainted))
	if writer := apiserver.NodeOf(s.last).LastWriter; writer != cluster.ControllerManager {
		s.t.Errorf("the pair was removed by %q and not by the controller", writer)
	}
}

func kubeletDies(s *story, d *disk) {
	d.takeInodes()
	s.until("taintlet holds the pair", held)
	s.stays = true
	if err := d.kubelet.Kill(); err != nil {
		s.t.Fatal(err)
	}
	s.until("the kubelet is missed", func(node *corev1.Node) bool {
		return diskPressure(corev1.ConditionUnknown)(node) && unreachable(corev1.TaintEffectNoSchedule)(node) && unreachable(corev1.TaintEffectNoExecute)(node)
	})
	s.untilControllerWorked() // and would take the pair away
	if err := d.kubelet.Restart(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.until("the kubelet is back", func(node *corev1.Node) bool {
		return diskPressure(corev1.ConditionFalse)(node) && !unreachable(corev1.TaintEffectNoSchedule)(node) && !unreachable(corev1.TaintEffectNoExecute)(node)
	})
	s.untilControllerWorked()
	s.stays = false
	d.giveInodes()
	s.until("the pair is gone", cluster.Not(tainted))
}

func unreachable(effect corev1.TaintEffect) func(*corev1.Node) bool {
	return cluster.HasTaint(corev1.TaintNodeUnreachable, effect)
}
