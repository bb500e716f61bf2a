package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	nodeName = "bench"
	// graceful is how long the agent may take to end when asked.
	graceful = 5 * time.Second
	// kubeletPeriod is how often the eviction manager samples, and how often the
	// kubelet writes its Node's status.
	kubeletPeriod = 10 * time.Second
	// patience is how long either is waited for: far above what a busy host
	// needs, so that what is missing then is missing.
	patience = 3 * time.Minute
	// maxDisturbed is how many runs of a subject may be disturbed by others.
	maxDisturbed = 10
)

// errDisturbed says that a run is void: other programs crossed a threshold.
var errDisturbed = errors.New("the Node is under pressure before the threshold is crossed: other programs run on this host")

// outcome is one run. Each is timed from the crossing of its own threshold.
type outcome struct {
	Taking    time.Duration // from the first crossing until all was taken
	Own       time.Duration // until the agent's taint was there
	Condition time.Duration // until the kubelet's condition was
	Taint     time.Duration // until the taint for that was
}

// latency is what came of one subject.
type latency struct {
	Title      string
	Thresholds string
	Runs       []outcome
}

// stage is what the measurements need: a control plane, a kubelet, and the
// agent's binary and rights.
type stage struct {
	t       *testing.T
	dir     string
	cluster *cluster.Cluster
	kubelet *kubelet.Kubelet
	agent   string // path of the binary
	memory  memoryPlan
	tasks   tasksPlan
}

// newStage starts all but the agent.
func newStage(t *testing.T, o *options) *stage {
	t.Helper()
	s := &stage{t: t, agent: o.agent, cluster: cluster.New(t, cluster.Options{})}
	var err error
	// In the cluster's folder, which is removed even if this process is killed.
	s.dir, err = os.MkdirTemp(s.cluster.LogDir(), "bench-") //nolint:usetesting // as it says
	must(t, err)
	if s.agent == "" {
		s.agent, err = process.BuildAgent(t.Context(), s.dir, process.BuildOptions{Release: true})
		must(t, err)
	}
	must(t, s.cluster.GrantAsAgent(t.Context(), bed.User))
	s.memory, err = planMemory()
	must(t, err)
	s.tasks, err = planTasks()
	must(t, err)
	s.kubelet, err = kubelet.Start(t.Context(), s.cluster, kubelet.Options{
		NodeName: nodeName, Progress: os.Stderr,
		EvictionHard: map[string]string{
			"memory.available": strconv.FormatUint(s.memory.kubelet, 10),
			"nodefs.available": strconv.Itoa(diskPercent) + "%",
			"pid.available":    strconv.FormatUint(s.tasks.leastFit, 10),
		},
		EvictionPressureTransitionPeriod: time.Second,
		KernelMemcgNotification:          o.notified,
	})
	must(t, err)
	t.Cleanup(func() {
		if err := s.kubelet.Stop(); err != nil {
			t.Error(err)
		}
	})
	must(t, s.checkWorkingSet(t.Context()))
	return s
}

// measureLatencies measures each subject.
func measureLatencies(t *testing.T, o *options) (all []latency) {
	s := newStage(t, o)
	for _, u := range subjects() {
		if slices.Contains(o.only, u.name) {
			all = append(all, s.measure(u, o.runs))
		}
	}
	return all
}

// startAgent starts the agent where the kubelet lives, and returns when it has
// said on the Node that the host is fine.
func (s *stage) startAgent() *process.Process {
	s.t.Helper()
	identity, err := s.cluster.Config(bed.User)
	must(s.t, err)
	file := filepath.Join(s.dir, "agent.yaml")
	must(s.t, os.WriteFile(file, []byte(s.configuration()), 0o600))
	a, err := s.kubelet.StartInside("the agent", process.Command(s.agent, "--node-name="+nodeName, "--kubeconfig="+cluster.Kubeconfig(s.t, identity),
		"--listen=127.0.0.1:0", "--config="+file), filepath.Join(s.dir, "agent.log"))
	must(s.t, err)
	s.t.Cleanup(func() { _ = a.Kill() }) // it may have ended
	_, err = s.cluster.WaitNode(s.t.Context(), nodeName, func(node *corev1.Node) bool {
		healthy := 0
		for _, condition := range node.Status.Conditions {
			if strings.HasPrefix(string(condition.Type), "Host") && condition.Status == corev1.ConditionFalse {
				healthy++
			}
		}
		return healthy >= len(subjects()) && a.Err() == nil
	})
	if err != nil {
		s.t.Fatalf("wait for the agent to find this host healthy: %v\n%s", err, a.Tail(10))
	}
	return a
}

// measure runs one subject.
func (s *stage) measure(u subject, runs int) (l latency) {
	s.t.Helper()
	must(s.t, s.memory.align())
	a := s.startAgent()
	l.Title, l.Thresholds = u.title, s.describe(u)
	for disturbed := 0; len(l.Runs) < runs; {
		out, err := s.duel(s.t.Context(), u)
		if errors.Is(err, errDisturbed) && disturbed < maxDisturbed {
			disturbed++
			measure.Say("run %d is begun again: %v", len(l.Runs)+1, err)
			_, err = s.cluster.WaitNode(s.t.Context(), nodeName, u.clear)
			if err == nil {
				continue
			}
		}
		if err != nil {
			s.t.Fatalf("%s, run %d: %v\n%s\n%s", u.title, len(l.Runs)+1, err, a.Tail(10), s.kubelet.Tail(10))
		}
		l.Runs = append(l.Runs, out)
		measure.Say("%s, run %d of %d: taintlet %s, kubelet %s", u.title, len(l.Runs), runs, seconds(out.Own), seconds(out.Taint))
	}
	must(s.t, a.Stop(graceful))
	return l
}

// describe says which thresholds are crossed.
func (s *stage) describe(u subject) string {
	switch u.condition {
	case corev1.NodeMemoryPressure:
		return fmt.Sprintf("thresholds: the kubelet's memory.available %s, the agent's MemAvailable %s; both crossed from %s above to as much below",
			mebibytes(s.memory.kubelet), mebibytes(s.memory.agent), mebibytes(s.memory.gap))
	case corev1.NodePIDPressure:
		return fmt.Sprintf("threshold: %d tasks used of %d; %d are taken", s.tasks.limit-s.tasks.leastFit, s.tasks.limit, tasksTaken)
	default:
		return fmt.Sprintf("threshold: %d %% of the space available; crossed from %d %% above to as much below", diskPercent, diskGapPercent)
	}
}

// duel is one run: a threshold is crossed, both are timed, and both recover.
func (s *stage) duel(ctx context.Context, u subject) (out outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	load := u.load(s)
	defer func() {
		if err != nil {
			err = errors.Join(err, load.release())
		}
	}()
	if err := load.approach(ctx); err != nil {
		return out, err
	}
	// At any phase of the kubelet's loops: they began when the kubelet did, and
	// the run before ended with one of them.
	if err := process.Pause(ctx, rand.N(kubeletPeriod)); err != nil {
		return out, err
	}
	watcher, err := s.watchClear(ctx, u)
	if err != nil {
		return out, err
	}
	defer watcher.Stop()
	if out, err = race(ctx, watcher, u, load); err != nil {
		return out, errors.Join(err, ctx.Err())
	}
	if err := load.release(); err != nil {
		return out, err
	}
	return out, s.awaitClear(ctx, watcher, u)
}

// race crosses the threshold and returns when both have seen it. The watch is
// followed meanwhile, as a taint may be there before all is taken.
func race(ctx context.Context, watcher watch.Interface, u subject, load load) (outcome, error) {
	var c crossing
	var failed error
	crossed := make(chan struct{})
	go func() {
		defer close(crossed)
		c, failed = load.cross(ctx)
		if failed != nil {
			watcher.Stop() // nothing will come
		}
	}()
	first, err := observe(watcher, u)
	<-crossed // a child ends with its context at the latest
	if failed != nil {
		return outcome{}, failed
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{
		Taking:    c.done.since(min(c.own, c.kubelet)),
		Own:       first.own.since(c.own),
		Condition: first.condition.since(c.kubelet),
		Taint:     first.taint.since(c.kubelet),
	}, nil
}

// watchClear begins a watch of the Node, which must have no pressure yet.
func (s *stage) watchClear(ctx context.Context, u subject) (watch.Interface, error) {
	nodes := s.cluster.Client().CoreV1().Nodes()
	node, err := nodes.Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the Node: %w", err)
	}
	if !u.clear(node) {
		return nil, errDisturbed
	}
	watcher, err := nodes.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + nodeName, ResourceVersion: node.ResourceVersion,
	})
	if err != nil {
		return nil, fmt.Errorf("watch the Node: %w", err)
	}
	return watcher, nil
}

// sights are the moments when the versions of the Node arrived that first had
// the agent's taint, the kubelet's condition, and the taint for that.
type sights struct{ own, condition, taint moment }

// observe follows the watch until both taints have come.
func observe(watcher watch.Interface, u subject) (first sights, err error) {
	for event := range watcher.ResultChan() {
		arrived := now()
		node, isNode := event.Object.(*corev1.Node)
		if !isNode {
			return first, fmt.Errorf("watch the Node: %s %v", event.Type, event.Object)
		}
		for _, sight := range []struct {
			seen bool
			when *moment
		}{
			{tainted(node, u.own), &first.own},
			{u.underPressure(node), &first.condition},
			{tainted(node, u.controller), &first.taint},
		} {
			if sight.seen && *sight.when == 0 {
				*sight.when = arrived
			}
		}
		if first.own != 0 && first.taint != 0 {
			return first, nil
		}
	}
	return first, fmt.Errorf("the watch of the Node ended; seen by then: the agent's taint %t, the kubelet's %t", first.own != 0, first.taint != 0)
}

// awaitClear waits until nothing is left of a run.
func (s *stage) awaitClear(ctx context.Context, watcher watch.Interface, u subject) error {
	var last *corev1.Node
	for event := range watcher.ResultChan() {
		if node, isNode := event.Object.(*corev1.Node); isNode {
			if last = node; u.clear(node) {
				return nil
			}
		}
	}
	return errors.Join(fmt.Errorf("the Node did not recover; it was last seen as %+v", last), ctx.Err())
}

func (u subject) clear(node *corev1.Node) bool {
	return !tainted(node, u.own) && !tainted(node, u.controller) && !u.underPressure(node)
}

// underPressure says whether the kubelet's condition is True.
func (u subject) underPressure(node *corev1.Node) bool {
	return cluster.HasCondition(u.condition, corev1.ConditionTrue)(node)
}

func tainted(node *corev1.Node, key string) bool {
	return cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(node)
}
