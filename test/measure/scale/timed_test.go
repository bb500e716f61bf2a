package scale

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	ticks    = 100 // USER_HZ of Linux
	mebibyte = 1 << 20
)

// used is what a process has used since it began, and holds now.
type used struct {
	PID int
	CPU float64 // seconds
	RSS uint64  // bytes
}

func (s *stage) used() map[string]used {
	pids := s.cluster.Processes()
	pids[harnessName] = os.Getpid()
	for name, c := range s.children() {
		pids[name] = c.process.PID()
	}
	fs, err := procfs.NewDefaultFS()
	s.must(err)
	machine, err := fs.Stat()
	s.must(err)
	busy := machine.CPUTotal
	all := map[string]used{othersName: {CPU: busy.User + busy.Nice + busy.System + busy.IRQ + busy.SoftIRQ + busy.Steal}}
	for name, pid := range pids {
		p, err := procfs.NewProc(pid)
		s.must(err)
		stat, err := p.Stat()
		s.must(err)
		all[name] = used{pid, float64(stat.UTime+stat.STime) / ticks, uint64(stat.ResidentMemory())} //nolint:gosec // no negative memory
	}
	return all
}

// children are the child processes that run, by their names in a cost.
func (s *stage) children() map[string]*child {
	all := map[string]*child{}
	for name, c := range map[string]*child{kubeletsName: s.kubelets, agentsName: s.agents, foreignName: s.foreign} {
		if c != nil {
			all[name] = c
		}
	}
	return all
}

// during measures what the processes use while do runs. A process that was replaced
// meanwhile counts from its own start.
func (s *stage) during(do func()) cost {
	begin, before := time.Now(), s.used()
	do()
	after := s.used()
	c := cost{Seconds: time.Since(begin).Seconds(), Cores: map[string]float64{}, RSS: map[string]float64{}, Late: map[string]latency{}}
	others := 0.0
	for name, u := range after {
		used := u.CPU
		if b := before[name]; b.PID == u.PID {
			used -= b.CPU
		}
		c.Cores[name], c.RSS[name] = used/c.Seconds, float64(u.RSS)/mebibyte
		if name != othersName {
			others += c.Cores[name]
		}
	}
	c.Cores[othersName] -= others
	end := time.Now()
	c.Late[harnessName] = s.timers.late(begin, end)
	for name, child := range s.children() {
		var l latency
		s.must(child.tell(command{Op: lateness, From: begin, To: end}, &l))
		c.Late[name] = l
	}
	// A collection, so that what is live counts and not what was.
	_, err := s.cluster.Client().Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(s.ctx)
	s.must(err)
	page := s.metrics()
	c.Live = (bed.Metric(page, "go_memstats_heap_alloc_bytes") + bed.Metric(page, "go_memstats_stack_inuse_bytes")) / mebibyte
	c.Goroutines = bed.Metric(page, "go_goroutines")
	return c
}

// metrics is the API server's page of metrics.
func (s *stage) metrics() string {
	page, err := s.cluster.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.ctx)
	s.must(err)
	return string(page)
}

// keepTook is how long the keep policy took for each write that it judged between two pages of
// metrics, on average, in ms.
func keepTook(before, after string) float64 {
	grown := func(name string) float64 {
		const checks, policy = "apiserver_mutating_admission_policy_check_duration_seconds_", `policy="taintlet-keep"`
		return bed.Sum(after, checks+name, policy) - bed.Sum(before, checks+name, policy)
	}
	if grown("count") == 0 {
		return 0
	}
	return 1000 * grown("sum") / grown("count")
}

// admissionTries is how often each write is timed.
const admissionTries = 200

// admission times writes of an agent, which the policies judge, beside the same of
// an administrator, whom no policy matches.
func (r *run) admission() {
	agent, err := kubernetes.NewForConfig(r.setup.as(r.setup.Tokens[r.nodes[0]]))
	r.must(err)
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
		medians := r.timed(write.kind, write.body, write.part, agent, r.cluster.Client())
		for i, who := range []string{"an agent", "an administrator"} {
			r.f.Admission[fmt.Sprintf("%s by %s, dry run, median of %d", write.name, who, admissionTries)] = medians[i]
		}
	}
}

// timed returns how long a patch of the first Node takes each client, in ms: the medians of
// dry runs, which the clients make in turn.
func (r *run) timed(kind types.PatchType, body string, part []string, clients ...kubernetes.Interface) (medians []float64) {
	took := make([][]time.Duration, len(clients))
	for range admissionTries {
		for i, client := range clients {
			begin := time.Now()
			_, err := client.CoreV1().Nodes().Patch(r.ctx, r.nodes[0], kind, []byte(body), metav1.PatchOptions{FieldManager: "taintlet", DryRun: []string{metav1.DryRunAll}}, part...)
			r.must(err)
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for _, all := range took {
		slices.Sort(all)
		medians = append(medians, float64(all[len(all)/2].Microseconds())/1000)
	}
	return medians
}

// handshakeTries is how many TLS connections are made to tell what one costs.
const handshakeTries = 3000

// handshakes measures what a TLS connection costs the API server: each agent makes
// one every minute (apiEvery).
func (r *run) handshakes() {
	server := strings.TrimPrefix(r.cluster.URL(), "https://")
	c := r.during(func() {
		for range handshakeTries {
			shakeHands(r.ctx, new(net.Dialer), server)
		}
		r.must(r.ctx.Err())
	})
	if idle := r.f.Idle; idle.Seconds > 0 {
		r.f.Handshake = 1000 * (c.Cores[cluster.APIServer] - idle.Cores[cluster.APIServer]) * c.Seconds / handshakeTries
	}
}

// status runs kubectl taintlet status over all Nodes.
func (r *run) status() {
	kubeconfig := cluster.Kubeconfig(r.t, r.cluster.Admin())
	tainted, _, _ := r.view.now()
	for _, output := range []string{"table", "json"} {
		var out, complaint bytes.Buffer
		command := exec.CommandContext(r.ctx, r.program, "status", "--output="+output, "--namespace=", "--kubeconfig="+kubeconfig) //nolint:gosec // our own binary
		command.Stdout, command.Stderr = &out, &complaint
		begin := time.Now()
		most, err := process.RunMeasured(r.ctx, command)
		s := status{Args: fmt.Sprintf("--output=%s, %d tainted", output, tainted), Took: time.Since(begin), Lines: strings.Count(out.String(), "\n"), RSS: float64(most) / 1024}
		const notWell = 3
		if err != nil && command.ProcessState.ExitCode() != notWell {
			r.t.Fatalf("kubectl taintlet status: %v: %s", err, complaint.String())
		}
		r.f.Status = append(r.f.Status, s)
	}
}

// whileHeld measures the controller and the keep policy while all Nodes are held, a
// tenth of them and none.
func (r *run) whileHeld() {
	r.brakeAt(0)
	for _, count := range []int{len(r.nodes), len(r.nodes) / 10, 0} {
		r.taint(count)
		r.pause(3 * settle) // what the change left to do
		if count == len(r.nodes) {
			r.status()
		}
		r.heldNow(count)
	}
}

// untaint is how the controller removes a taint.
const untaint = `{"spec":{"taints":null}}`

// heldNow measures the controller while so many Nodes are held. Then it times writes of the
// controller, which the keep policy judges, beside those of an administrator, which it does not.
func (r *run) heldNow(count int) {
	h := &held{Nodes: count}
	r.f.Held = append(r.f.Held, h)
	before := r.metrics()
	w := window{From: time.Now()}
	c := r.during(func() { r.pause(r.options.observed) })
	w.To = w.From.Add(r.options.observed)
	after := r.metrics()
	h.Policy = keepTook(before, after)
	h.Seconds, h.Cores, h.APIServer, h.Cost = c.Seconds, c.Cores[cluster.ControllerManager], c.Cores[cluster.APIServer], c
	r.later = append(r.later, func(l log) {
		h.Patches = float64(len(l.of(controllerUser, w).only("patch", "nodes"))) / r.options.observed.Minutes()
	})
	config, err := r.cluster.Config(controllerUser, "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
	r.must(err)
	controller, err := kubernetes.NewForConfig(config)
	r.must(err)
	medians := r.timed(types.MergePatchType, untaint, nil, controller, r.cluster.Client())
	h.Timed, h.WithPolicy, h.WithoutPolicy = keepTook(after, r.metrics()), medians[0], medians[1]
}
