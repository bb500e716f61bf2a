package faults

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
)

// A step of the wall clock changes what the agent tells, and nothing that it decides: what is
// right is right, and a connection that gave no answer is not trusted again before its time.
func TestWallClockIsStepped(t *testing.T) {
	s := newScene(t, "wall-clock")
	r := s.start()
	s.set(probes.MemoryPressure, bad)
	r.proxy.begin(first(requestFaultNamed("connection cut before it arrives"), "patch nodes"))
	s.settles()
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
		var onKept atomic.Int32
		r.proxy.begin(func(c call) *fault {
			if c.kind == "patch nodes" && c.protocol != "HTTP/1.1" {
				onKept.Add(1)
			}
			return nil
		})
		s.stepAll(step)
		s.set(probes.MemoryPressure, good)
		s.settles()
		s.set(probes.MemoryPressure, bad)
		s.settles()
		if onKept.Load() > 0 {
			t.Errorf("after a step of the clock by %s the agent used the connection again that gave no answer", step)
		}
		want := time.Now().Add(r.wall)
		if !s.judge.until(patience(), func(node *corev1.Node) bool { return told(node).Sub(want).Abs() < 10*time.Minute }) {
			t.Errorf("after a step of the clock by %s the agent wrote at %s by its clock, which is %s", step, told(s.judge.newest()), want)
		}
	}
}

// first is a rule by which a fault befalls the first request of a kind.
func first(f *fault, kind string) rule {
	var isOver atomic.Bool
	return func(c call) *fault {
		if c.kind != kind || isOver.Swap(true) {
			return nil
		}
		return f
	}
}

func requestFaultNamed(name string) *fault {
	for _, f := range requestFaults() {
		if f.name == name {
			return f
		}
	}
	return nil
}

// told is when the agent wrote its condition of memory most recently, by its own clock.
func told(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == "HostMemoryPressure" {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}
