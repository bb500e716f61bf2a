package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// noiseAnnotation is what somebody changes all the time who makes the Node a busy one.
const noiseAnnotation = "example.com/noise"

// bound is how long after the last fault the Node may take to be right: a refused write is
// tried again after a minute and a half at the latest.
const bound = 2 * time.Minute

// patience is that bound; less for a mutant, which may never get there.
func patience() time.Duration {
	if os.Getenv(mutantEnv) != "" {
		return bound / 6
	}
	return bound
}

// scene is a Node with its host, its agents and its judge.
type scene struct {
	t     *testing.T
	c     *cluster.Cluster
	berth string
	name  string
	node  *cluster.Node
	host  *host
	judge *judge
	// agents run on the Node. config is their configuration file.
	agents []*runner
	config string

	personal   sync.Mutex   // held while a person writes, or the Node is made anew
	hasRemoved bool         // a person has removed a taint of ours
	mayEnd     atomic.Int32 // more than 0: an agent may end by itself

	mu  sync.Mutex
	log []string
}

// newScene registers a Node with taints and annotations of others, and starts no agent.
func newScene(t *testing.T, name string) *scene {
	t.Helper()
	c := require(t)
	s := &scene{t: t, c: c, berth: <-berths, name: name, host: newHost(t), config: filepath.Join(t.TempDir(), "config.yaml")}
	t.Cleanup(func() { berths <- s.berth })
	s.configure(configuration)
	s.register()
	t.Cleanup(s.leave)
	s.judge = newJudge(t, c, name, s.host, s.holder)
	s.judge.hasTold = s.hasTold
	t.Cleanup(s.tell)
	return s
}

// register makes the Node, and gives it what belongs to others.
func (s *scene) register() {
	s.t.Helper()
	var err error
	if s.node, err = s.c.RegisterNode(s.t.Context(), s.name); err != nil {
		s.t.Fatal(err)
	}
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.2, Jitter: 0.3, Steps: 40, Cap: time.Second}
	err = retry.RetryOnConflict(backoff, func() error { // an agent may write it already
		node := s.c.GetNode(s.t, s.name)
		node.Labels["example.com/pool"] = "a"
		node.Annotations = maps.Clone(node.Annotations)
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations["example.com/note"] = "a"
		node.Spec.Taints = append([]corev1.Taint{
			{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule},
			{Key: "example.com/pids", Value: "mine", Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: "example.com/gpu", Effect: corev1.TaintEffectNoExecute},
		}, node.Spec.Taints...)
		_, err := s.c.Client().CoreV1().Nodes().Update(s.t.Context(), node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// leave removes the Node and frees the slot.
func (s *scene) leave() {
	ctx := context.Background()
	_ = s.node.Stop() // its last report may have met a fault
	if err := s.c.Client().CoreV1().Nodes().Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
		s.t.Error(err)
	}
	if err := s.hold(ctx, ""); err != nil {
		s.t.Error(err)
	}
}

const slot = apiserver.SlotPrefix + "0"

// hold gives the slot to somebody; empty: to nobody.
func (s *scene) hold(ctx context.Context, holder string) error {
	spec := fmt.Sprintf(`{"spec":{"holderIdentity":%q,"renewTime":%q}}`, holder, time.Now().UTC().Format(metav1.RFC3339Micro))
	_, err := s.c.Client().CoordinationV1().Leases(s.berth).Patch(ctx, slot, types.MergePatchType, []byte(spec), metav1.PatchOptions{})
	return err
}

// holder asks who holds the slot.
func (s *scene) holder() string {
	for {
		lease, err := s.c.Client().CoordinationV1().Leases(s.berth).Get(context.Background(), slot, metav1.GetOptions{})
		switch {
		case err != nil:
			time.Sleep(50 * time.Millisecond) // the API server is away
		case lease.Spec.HolderIdentity == nil:
			return ""
		default:
			return *lease.Spec.HolderIdentity
		}
	}
}

// hasTold is for judge.hasTold.
func (s *scene) hasTold() bool {
	s.mu.Lock()
	agents := slices.Clone(s.agents)
	s.mu.Unlock()
	return slices.ContainsFunc(agents, func(r *runner) bool {
		return strings.Contains(r.tail(1000), "cannot announce an eviction by an Event")
	})
}

// note keeps what was done, for whoever reads of a failure.
func (s *scene) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%6.2fs ", time.Since(s.judge.begin).Seconds())+fmt.Sprintf(format, args...))
}

// tell fails the test with what the judge found.
func (s *scene) tell() {
	for _, wrong := range s.judge.verdicts() {
		s.t.Error(wrong)
	}
	if s.t.Failed() {
		s.t.Logf("what was done on %s:\n%s", s.name, strings.Join(s.log, "\n"))
		for i, r := range s.agents {
			s.t.Logf("agent %d:\n%s\n%s", i, strings.Join(r.proxy.requests, "\n"), r.tail(60))
		}
	}
}

// configure puts another configuration in place, as a ConfigMap's volume does.
func (s *scene) configure(text string) {
	if err := errors.Join(os.WriteFile(s.config+".new", []byte(text), 0o600), os.Rename(s.config+".new", s.config)); err != nil {
		s.t.Error(err)
	}
	if s.judge != nil {
		s.judge.allow(2)
	}
}

// allow adds writes that the write budget does not count.
func (j *judge) allow(writes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.allowed += writes
}

// set changes the host.
func (s *scene) set(condition probes.Condition, to health) {
	s.note("%s is %s", condition, to)
	s.host.set(condition, to)
}

// settles waits until the Node is right, and fails the test if that takes too long.
func (s *scene) settles() time.Duration {
	begin := time.Now()
	if !s.judge.until(patience(), s.judge.isRight) {
		node := s.judge.newest()
		s.t.Errorf("after %s the Node is not right: taints %v, record %s", patience(), node.Spec.Taints, node.Annotations[taints.RecordAnnotation])
	}
	return time.Since(begin)
}

// person changes what belongs to others, guarded by the version, as kubectl does, and
// returns when the judge has seen it.
func (s *scene) person(what string, change func(*corev1.Node)) {
	s.personal.Lock()
	defer s.personal.Unlock()
	s.note("a person %s", what)
	var landed *corev1.Node
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.2, Jitter: 0.3, Steps: 40, Cap: time.Second}
	err := retry.RetryOnConflict(backoff, func() error {
		node, err := s.c.Client().CoreV1().Nodes().Get(s.t.Context(), s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before := node.DeepCopy()
		change(node)
		s.judge.expect(before, node)
		landed, err = s.c.Client().CoreV1().Nodes().Update(s.t.Context(), node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		s.judge.complain(fmt.Sprintf("a person %s: %v", what, err))
		return
	}
	s.judge.until(bound, func(node *corev1.Node) bool { return len(after([]*corev1.Node{landed}, node.ResourceVersion)) == 0 })
}

// expect takes in what a person is about to write, and which of the agents' pairs are not
// in it.
func (j *judge) expect(before, after *corev1.Node) {
	j.mu.Lock()
	defer j.mu.Unlock()
	has := j.ours(after)
	for _, pair := range j.ours(before) {
		if !slices.Contains(has, pair) && !slices.Contains(j.lifted, pair) {
			j.lifted = append(j.lifted, pair)
			j.lose(pair)
		}
	}
	j.foreign = []string{j.foreignOn(before), j.foreignOn(after)}
}

// claim has a person put a pair of the rules on the Node before any agent does. It is
// theirs.
func (s *scene) claim() {
	s.judge.mu.Lock()
	s.judge.claimed = []taints.Pair{{Key: "example.com/pids", Effect: taints.NoSchedule}}
	s.judge.mu.Unlock()
	s.person("sets the taint of a rule", func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "example.com/pids", Value: "mine", Effect: corev1.TaintEffectNoSchedule})
	})
}

// runner keeps an agent running, as a kubelet does.
type runner struct {
	proxy      *proxy
	scene      *scene
	kubeconfig string
	token      string // the file of its token
	clock      string // the file of its wall clock
	args       []string
	env        []string

	mu      sync.Mutex
	now     *process.Process
	wall    time.Duration // how far the wall clock of its host was stepped
	group   *group        // nil: the agent is in the control group of the tests
	logs    []*process.Lines
	isEnded bool
	kills   int
}

// start starts an agent, which starts again after each end.
func (s *scene) start() *runner {
	s.t.Helper()
	folder := s.t.TempDir()
	seen := func(c call, body string) {
		if c.kind == "create events" && strings.Contains(body, "this cannot be undone") {
			s.judge.mu.Lock()
			s.judge.announced = time.Now()
			s.judge.mu.Unlock()
		}
	}
	r := &runner{scene: s, proxy: newProxy(s.t, s.c.Admin(), seen), kubeconfig: filepath.Join(folder, "kubeconfig"), token: filepath.Join(folder, "token"), clock: filepath.Join(folder, "clock")}
	r.identify()
	r.args = append(s.host.files.Flags(), "--kubeconfig="+r.kubeconfig, "--config="+s.config,
		"--node-name="+s.name, "--namespace="+s.berth, "--listen=127.0.0.1:0")
	r.env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT=64MiB", clockEnv+"="+r.clock)
	s.mu.Lock()
	s.agents = append(s.agents, r)
	s.mu.Unlock()
	var group sync.WaitGroup
	if err := r.launch(); err != nil {
		s.t.Fatal(err)
	}
	group.Go(r.keep)
	s.t.Cleanup(func() {
		r.end()
		group.Wait()
	})
	return r
}

func (r *runner) launch() error {
	command := process.Command(program.Path(r.scene.t), r.args...)
	output := &process.Lines{}
	command.Stderr = output
	r.scene.judge.allow(2)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isEnded {
		return nil
	}
	var err error
	command.Env = r.env
	if r.now, err = process.Start("the agent", command, ""); err != nil {
		return err
	}
	r.logs = append(r.logs, output)
	if r.group != nil {
		err = r.group.take(r.now.PID())
	}
	return err
}

func (r *runner) keep() {
	for {
		r.mu.Lock()
		running, isEnded := r.now, r.isEnded
		r.mu.Unlock()
		if isEnded {
			return
		}
		<-running.Ended()
		err := running.Err()
		if err != nil {
			time.Sleep(100 * time.Millisecond) // a kubelet waits for longer
		}
		if err != nil && r.scene.mayEnd.Load() == 0 {
			r.scene.judge.complain(fmt.Sprintf("the agent ended by itself: %v", err))
		}
		if err := r.launch(); err != nil {
			r.scene.judge.complain(err.Error())
			return
		}
	}
}

func (j *judge) complain(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrong = append(j.wrong, text)
}

// kill ends the process as the kernel's OOM killer does. It starts again.
func (r *runner) kill() {
	r.mu.Lock()
	running := r.now
	r.kills++
	r.mu.Unlock()
	_ = running.Kill() // that it ended by itself is told by keep
}

// killed returns how often the agent was killed.
func (r *runner) killed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kills
}

// end ends the agent as a kubelet does.
func (r *runner) end() {
	r.mu.Lock()
	r.isEnded = true
	running := r.now
	r.mu.Unlock()
	_ = running.Stop(10 * time.Second) // it may have been stopped or killed by a fault
}

// tail is the end of the log.
func (r *runner) tail(lines int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for i, l := range r.logs {
		all = append(all, fmt.Sprintf("--- process %d", i))
		all = append(all, strings.Split(strings.TrimSpace(l.String()), "\n")...)
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
