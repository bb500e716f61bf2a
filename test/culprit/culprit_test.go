package culprit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	nodeName  = "localhost"
	podImage  = "localhost/taintlet-test/hog:1"
	pods      = 20
	movedUnit = "moved.service"
	// late is how long after its taint the condition may name nobody.
	late = 2 * time.Second
	// patience is how long a taint is waited for, and tries how often a hog is played at
	// most that was disturbed: whoever else uses this host may take memory, or give it back.
	patience = 20 * time.Second
	tries    = 5
)

// bench is a kubelet with its pods, and units beside it.
type bench struct {
	cluster *cluster.Cluster
	kubelet *kubelet.Kubelet
	program string
	pods    []*hog
	units   []*hog
	ofHost  *hog
	// atTaint is done when the taint is there.
	atTaint func()
}

func (b *bench) pod(r *rand.Rand) *hog { return b.pods[r.IntN(len(b.pods))] }

func (b *bench) somePods(r *rand.Rand, n int) (some []*hog) {
	for _, i := range r.Perm(len(b.pods))[:n] {
		some = append(some, b.pods[i])
	}
	return some
}

func (b *bench) all() []*hog { return append(append(slices.Clone(b.pods), b.units...), b.ofHost) }

// TestCulprit has hogs take memory and tasks, TAINTLET_CULPRIT_SEEDS of them (17, each course
// once, unless it says otherwise), and reads whom the Node's condition names.
func TestCulprit(t *testing.T) {
	if !cluster.Required("kubelet") {
		t.Skip("needs root, containerd and a control plane: set TAINTLET_REQUIRE=controlplane,kubelet")
	}
	seeds := len(courses())
	if text := os.Getenv("TAINTLET_CULPRIT_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	origin := measure.Here("../..")
	b := newBench(t)
	results := map[string]*result{}
	for seed := range seeds {
		c := courses()[seed%len(courses())]
		if results[c.name] == nil {
			results[c.name] = &result{}
		}
		o := b.play(t, c, seed)
		for range tries - 1 {
			if !o.isDisturbed() {
				break
			}
			results[c.name].disturbed++
			o = b.play(t, c, seed)
		}
		results[c.name].add(o)
		if path := os.Getenv("TAINTLET_CULPRIT_RESULTS"); path != "" { // also of a run that is broken off
			text, _ := summary(results)
			write(t, path, fmt.Sprintf("# Whom the Node names\n\nSeeds 0 to %d of `make culprit SEEDS=%d`, on a real kubelet with %d pods, %s. %s\n\n%s", seed, seeds, pods, origin.Date, origin, text))
		}
	}
	text, isRight := summary(results)
	t.Log("\n" + text)
	if !isRight {
		t.Error("less than 99 % are right")
	}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{cluster: cluster.New(t, cluster.Options{})}
	var err error
	b.kubelet, err = kubelet.Start(t.Context(), b.cluster, kubelet.Options{
		NodeName: nodeName, EvictionHard: map[string]string{"memory.available": "100Mi"}, Pods: true, Progress: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(b.kubelet.Tail(20))
		}
		if err := b.kubelet.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := b.kubelet.ImportProgram(t.Context(), "test/culprit/hog", podImage); err != nil {
		t.Fatal(err)
	}
	if b.program, err = process.BuildAgent(t.Context(), t.TempDir(), process.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.GrantAsAgent(t.Context(), bed.User); err != nil {
		t.Fatal(err)
	}
	units := []string{"batch.service", "backup.service", "logs.service"}
	t.Cleanup(func() { removeUnits(t, append(units, movedUnit)) })
	hosts := startHogs(t, append(units, "")...)
	b.units, b.ofHost = hosts[:len(units)], hosts[len(units)]
	b.startPods(t)
	return b
}

// startPods starts the pods, of every class of service.
func (b *bench) startPods(t *testing.T) {
	t.Helper()
	var uids []string
	for i := range pods {
		p := cluster.NewPod(fmt.Sprintf("hog-%02d", i), nodeName)
		p.Spec.HostNetwork = true
		c := &p.Spec.Containers[0]
		c.Image, c.ImagePullPolicy, c.Args = podImage, corev1.PullNever, []string{"/fifo"}
		switch quantity := resource.MustParse("1Mi"); i % 3 {
		case 1: // Burstable
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: quantity}
		case 2: // Guaranteed
			both := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Gi"), corev1.ResourceCPU: resource.MustParse("2")}
			c.Resources.Limits = both
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: quantity, corev1.ResourceCPU: resource.MustParse("1m")}
		}
		name := b.cluster.CreatePod(t, p)
		uids = append(uids, name)
	}
	for _, name := range uids {
		p, err := b.cluster.WaitPod(t.Context(), metav1.NamespaceDefault, name, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		if err != nil {
			t.Fatal(err)
		}
		b.pods = append(b.pods, hogOfPod(t, string(p.UID)))
	}
}

// play has one hog take what the thresholds of this moment leave, and says whom the condition
// named.
func (b *bench) play(t *testing.T, c course, seed int) (o outcome) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 27)) //nolint:gosec // a seed for a test
	amount, config := memoryConfig(t, r)
	condition, key := corev1.NodeConditionType("HostMemoryPressure"), "example.com/scarce-memory"
	if c.isTask {
		amount, config = taskConfig(t, r)
		condition, key = "HostPIDPressure", "example.com/scarce-pids"
	}
	stop := b.startAgent(t, config)
	defer stop()
	versions, end := b.watch(t)
	defer end()
	b.atTaint = func() {}
	o.right = c.run(t, r, b, amount)
	defer b.settle(t, key, condition)
	deadline := time.After(patience)
	var tainted time.Time
	for {
		select {
		case node := <-versions:
			if tainted.IsZero() && cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(node) {
				tainted = time.Now()
				deadline = time.After(late)
				b.atTaint()
			}
			o.follow(messageOf(node, condition), tainted)
		case <-deadline:
			t.Logf("seed %d, %s: %s", seed, c.name, o)
			return o
		}
		if o.isTainted = !tainted.IsZero(); o.isTainted && o.isDone() {
			t.Logf("seed %d, %s: %s", seed, c.name, o)
			return o
		}
	}
}

// settle has all hogs give back what they took, and waits until they have, and the Node says
// nothing of that any more.
func (b *bench) settle(t *testing.T, key string, condition corev1.NodeConditionType) {
	t.Helper()
	for _, h := range b.all() {
		h.tell(t, "drop")
	}
	for _, h := range b.all() {
		cluster.Eventually(t, "that "+h.who+" holds nothing", func() error { return h.holdsNothing(t) })
	}
	if _, err := b.cluster.WaitNode(t.Context(), nodeName, func(node *corev1.Node) bool {
		return !cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(node) && messageOf(node, condition) == ""
	}); err != nil {
		t.Fatal(err)
	}
}

const (
	settings = `apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
memory:
  availablePercent: %[1]s
  stalledPercent: 0
  debounce: {clearFactor: %[2]s, clearAfter: 1s, maxClearAfter: 1s}
pid:
  usedPercent: %[3]s
  debounce: {clearFactor: %[4]s, clearAfter: 1s, maxClearAfter: 1s}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/scarce-memory, effect: NoSchedule}}
- {condition: PIDPressure, level: Degraded, taint: {key: example.com/scarce-pids, effect: NoSchedule}}
writeBudget: {interval: 1s}
`
)

// memoryConfig has a threshold of memory that an amount, in bytes, exceeds by 2/5, and that
// is near from 1/4 of it on.
func memoryConfig(t *testing.T, r *rand.Rand) (amount int, config string) {
	t.Helper()
	amount = 3<<30 + r.IntN(1<<30)
	memory, err := process.ReadHostMemory()
	if err != nil {
		t.Fatal(err)
	}
	available, total := float64(memory.Available), float64(memory.Total)
	threshold, clears := available-0.6*float64(amount), available-0.25*float64(amount)
	return amount, fmt.Sprintf(settings, number(100*threshold/total), number(clears/threshold), "85", "1.5")
}

// taskConfig has the same of tasks.
func taskConfig(t *testing.T, r *rand.Rand) (amount int, config string) {
	t.Helper()
	amount = 2000 + r.IntN(1500)
	used, limit, err := process.ReadHostTasks()
	if err != nil {
		t.Fatal(err)
	}
	free := float64(limit - used)
	threshold, clears := free-0.6*float64(amount), free-0.25*float64(amount)
	return amount, fmt.Sprintf(settings, "1", "1.5", number(100-100*threshold/float64(limit)), number(clears/threshold))
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }

// startAgent starts an agent, and returns when it has seen the host healthy.
func (b *bench) startAgent(t *testing.T, config string) (stop func()) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.yaml"), config)
	identity, err := b.cluster.Config(bed.User)
	if err != nil {
		t.Fatal(err)
	}
	ports, err := cluster.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	address, log := net.JoinHostPort("127.0.0.1", ports[0]), filepath.Join(dir, "log")
	agent, err := process.Start("the agent", exec.Command(b.program, "--node-name="+nodeName, "--kubeconfig="+cluster.Kubeconfig(t, identity),
		"--config="+filepath.Join(dir, "config.yaml"), "--listen="+address), log)
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if err := agent.Kill(); err != nil {
			t.Error(err)
		}
	}
	cluster.Eventually(t, "healthy samples", func() error {
		if _, err := process.Get(t.Context(), http.DefaultClient, "http://"+address+"/readyz"); err != nil {
			text, _ := os.ReadFile(log)
			return fmt.Errorf("%w\n%s", err, text)
		}
		metrics, err := process.Get(t.Context(), http.DefaultClient, "http://"+address+"/metrics")
		for _, name := range []string{"MemoryPressure", "PIDPressure"} {
			if err == nil && !strings.Contains(string(metrics), `taintlet_condition_severity{condition="`+name+`"} 0`) {
				return fmt.Errorf("%s is near its threshold", name)
			}
		}
		return err
	})
	return stop
}

// watch returns the versions of the Node from now on.
func (b *bench) watch(t *testing.T) (versions <-chan *corev1.Node, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	now := b.cluster.GetNode(t, nodeName)
	watcher, err := b.cluster.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + nodeName, ResourceVersion: now.ResourceVersion})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	nodes := make(chan *corev1.Node, 1000)
	go func() { // ends with the watch
		for event := range watcher.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				nodes <- node
			}
		}
	}()
	return nodes, func() {
		watcher.Stop()
		cancel()
	}
}

// messageOf returns what a condition says while it is True.
func messageOf(node *corev1.Node, kind corev1.NodeConditionType) string {
	for _, c := range node.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
