package scale

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

// scaleEnv has the options of TestScale.
const scaleEnv = "TAINTLET_SCALE"

// TestMain is also the beginning of each child process.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && !strings.HasPrefix(os.Args[1], "-") {
		if err := serveChild(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestScale measures what thousands of agents cost one API server. It writes a table, and says
// of each thing that has to hold whether it does.
func TestScale(t *testing.T) {
	args, isAsked := os.LookupEnv(scaleEnv)
	if !isAsked {
		t.Skip("takes an hour: make scale")
	}
	o, err := parse(strings.Fields(args))
	if err != nil {
		t.Fatal(err)
	}
	f := &figures{Origin: measure.Here("."), Nodes: o.nodes, Partial: o.partial, CPUs: runtime.NumCPU(), Cores: o.cores, Admission: map[string]float64{}}
	r := &run{stage: newStage(t, o), f: f}
	r.all(t)
	known, err := readResults(o.results)
	if err != nil {
		t.Fatal(err)
	}
	lines := judge(f, ofOtherSizes(newestFull(known), o.nodes))
	text := render(f, lines)
	t.Log("\n" + text)
	if err := writeResults(o.results, f, text); err != nil {
		t.Error(err)
	}
	if slices.ContainsFunc(lines, func(l line) bool { return l.verdict == no }) {
		t.Error("a demand does not hold")
	}
}

const (
	controllerUser = "system:serviceaccount:kube-system:node-controller"
	foreignUser    = "system:serviceaccount:default:foreign"

	// sliceSize is how many endpoints an EndpointSlice has.
	sliceSize = 100
)

// stage is the cluster with everything on it.
type stage struct {
	t       *testing.T      // or the part of it that runs
	ctx     context.Context //nolint:containedctx // that of a run, which has a limit
	options *options
	folder  string
	program string // kubectl-taintlet
	config  string // file of the agents
	cluster *cluster.Cluster
	nodes   []string
	setup   *setup

	view                      *view
	timers                    *timers
	kubelets, agents, foreign *child
	slices                    *sliceController
	brake                     int       // percent, as it is configured
	configured                time.Time // when the last agent got it
}

// must ends the part with the first error.
func (s *stage) must(errs ...error) {
	s.t.Helper()
	for _, err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// pause waits, unless the time of the run is over.
func (s *stage) pause(length time.Duration) {
	s.t.Helper()
	s.must(process.Pause(s.ctx, length))
}

// eventually asks again and again until the answer is no error.
func (s *stage) eventually(holds func() error) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; s.pause(50 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
}

// start starts a child process for the length of the test.
func (s *stage) startChild(t *testing.T, kind string, of *setup) *child {
	s.t.Helper()
	c, err := startChild(t.Context(), kind, s.folder, of)
	s.must(err)
	t.Cleanup(func() { _ = c.end() }) // it may have ended
	return c
}

// newStage makes the cluster with its Nodes, alive, and taintlet's permissions and
// policies as they are shipped. No agent runs yet.
func newStage(t *testing.T, o *options) *stage {
	t.Helper()
	s := &stage{t: t, ctx: t.Context(), options: o, timers: newTimers(), folder: t.TempDir()}
	var err error
	s.program, err = process.BuildPlugin(s.ctx, s.folder, process.BuildOptions{Release: true})
	s.must(err)
	s.config = filepath.Join(s.folder, "config.yaml")
	s.must(s.configure(o.firstBrake()))
	// Those whose requests are counted.
	s.cluster = cluster.New(t, cluster.Options{AuditLog: true, AuditOnly: []string{bed.User, controllerUser}})
	s.must(s.cluster.InstallRules(s.ctx), s.cluster.InstallKeep(s.ctx))
	s.register(t)
	s.makeSlices(t)
	s.identify()
	s.view, err = newView(s.ctx, s.cluster)
	s.must(err)
	t.Cleanup(s.view.end)
	s.foreign = s.startChild(t, foreignKind, s.setup)
	if o.cores > 0 {
		s.must(limitCores(s.cluster, o.cores))
	}
	return s
}

// configure writes the agents' configuration: the default but for a shorter time
// until a condition clears, without damping, so that one incident can follow
// another.
func (s *stage) configure(brakePercent int) error {
	text := fmt.Sprintf("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nfleetBrake:\n  percent: %d\n"+
		"memory:\n  debounce:\n    clearAfter: 20s\n    maxClearAfter: 20s\n", brakePercent)
	if err := os.WriteFile(s.config+".new", []byte(text), 0o600); err != nil {
		return err
	}
	s.brake = brakePercent
	return os.Rename(s.config+".new", s.config)
}

func (s *stage) register(t *testing.T) {
	measure.Say("%d nodes are registered", s.options.nodes)
	for i := range s.options.nodes {
		s.nodes = append(s.nodes, fmt.Sprintf("node-%05d.region-1.example.com", i))
	}
	s.setup = &setup{Host: s.cluster.URL(), CA: s.cluster.Admin().CAData, Nodes: s.nodes, Tokens: map[string]string{}, Config: s.config}
	own := *s.setup
	own.Admin, own.Kubelets = s.cluster.Admin().BearerToken, map[string]certificate{}
	for _, name := range s.nodes {
		c, err := s.cluster.Config("system:node:"+name, "system:nodes")
		s.must(err)
		own.Kubelets[name] = certificate{c.CertData, c.KeyData}
	}
	s.kubelets = s.startChild(t, kubeletsKind, &own)
	s.must(s.kubelets.tell(command{Op: "start"}, nil))
}

// makeSlices makes the EndpointSlices of the agents, of the cluster's DNS and of
// the API server, of the size that the controllers give them. Neighbouring Nodes are in
// different slices, as pods come in no order of their Nodes.
func (s *stage) makeSlices(t *testing.T) {
	agents := make([]*discoveryv1.EndpointSlice, (len(s.nodes)+sliceSize-1)/sliceSize)
	for i := range agents {
		agents[i] = bed.NewSlice(bed.Namespace, fmt.Sprintf("taintlet-%05d", i), "taintlet", "metrics", bed.AgentPort)
	}
	for i, node := range s.nodes {
		addEndpoint(agents[i%len(agents)], node, i)
	}
	var err error
	s.slices, err = startSliceController(s.ctx, s.cluster, agents)
	s.must(err)
	t.Cleanup(s.slices.end)
	dns := bed.NewSlice(metav1.NamespaceSystem, "kube-dns-00000", "kube-dns", "dns-tcp", 53)
	addEndpoint(dns, s.nodes[0], 0)
	addEndpoint(dns, s.nodes[len(s.nodes)-1], len(s.nodes)-1)
	own := bed.NewSlice(metav1.NamespaceDefault, "kubernetes", "kubernetes", "https", 6443)
	addEndpoint(own, s.nodes[0], 1<<16)
	s.must(bed.CreateSlices(s.ctx, s.cluster, dns, own))
}

// addEndpoint adds the endpoint of a pod on a Node, as large as the controller makes it.
func addEndpoint(slice *discoveryv1.EndpointSlice, node string, number int) {
	zone, serving := zoneOf(number), true
	e := bed.AddEndpoint(slice, node, addressOf(number+1).String())
	e.Zone, e.Conditions.Serving = &zone, &serving
	e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: slice.Namespace, Name: fmt.Sprintf("%s-abc%02d", slice.Labels[discoveryv1.LabelServiceName], number%100), UID: "01234567-89ab-cdef-0123-456789abcdef"}
}

// identify makes the tokens: one for each agent, bound to its Node, and that of the
// foreign client.
func (s *stage) identify() {
	measure.Say("%d tokens are made", len(s.nodes))
	var err error
	for _, name := range s.nodes {
		s.setup.Tokens[name], err = s.cluster.TokenOn(s.ctx, bed.Namespace, bed.Account, name, cluster.LongToken)
		s.must(err)
	}
	core := s.cluster.Client().CoreV1()
	if _, err := core.ServiceAccounts(metav1.NamespaceDefault).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		s.must(err)
	}
	_, err = core.ConfigMaps(metav1.NamespaceDefault).Create(s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: foreignObject}, Data: map[string]string{"of": "others"}}, metav1.CreateOptions{})
	s.must(err, s.cluster.Grant(s.ctx, "foreign", foreignUser, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}))
	s.setup.Foreign, err = s.cluster.Token(s.ctx, metav1.NamespaceDefault, "foreign", nil, cluster.LongToken)
	s.must(err)
}

// report asks the agents' process what it did since its start.
func (s *stage) report() (r agentsReport) {
	s.must(s.agents.tell(command{Op: "report"}, &r))
	return r
}

// readLog reads the audit log, in the order in which requests came.
func (s *stage) readLog() log {
	all, err := s.cluster.Requests("")
	s.must(err)
	once := log(cluster.Once(all))
	slices.SortFunc(once, func(a, b cluster.Request) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
	return once
}

// level makes some Nodes' memory have that level.
func (s *stage) level(level string, first, count int) {
	s.must(s.agents.tell(command{Op: "level", Level: level, First: first, Count: count}, nil))
}

// untilTainted waits until so many Nodes are tainted.
func (s *stage) untilTainted(count int) {
	s.t.Helper()
	s.eventually(func() error {
		if tainted, _, _ := s.view.now(); tainted != count {
			return fmt.Errorf("%d nodes are tainted, not %d", tainted, count)
		}
		return nil
	})
}

// settled waits until all changes of EndpointSlices are written, and returns how many writes
// there were since the start.
func (s *stage) settled() (writes int) {
	s.t.Helper()
	s.eventually(func() (err error) {
		writes, err = s.slices.written()
		return err
	})
	return writes
}

const (
	// patience is how long an end is waited for that must come.
	patience = 10 * time.Minute
	// cautiousFor is how long the fleet brake is cautious after a start or a new
	// configuration: cautiousFor of agent/decide.
	cautiousFor = 5 * time.Minute
)

// run measures everything in its order.
type run struct {
	*stage
	f *figures
	// bad is how many Nodes have memory that is bad.
	bad int
	// later are done when the audit log has been read.
	later []func(log)
}

// doings are what the parts do, in the order of parts.
func (r *run) doings() []func() {
	return []func(){
		r.baseline, r.idle, r.status, r.admission, r.handshakes,
		func() { r.braked("brake on, agents long started", 1) }, func() { r.braked("one zone, brake on, agents long started", zones) },
		r.rollOut, func() { r.unbraked(brakeOff, 1) }, r.restartAll, r.whileHeld, func() { r.unbraked("one zone, brake off", zones) },
		r.rewritten, r.cautious, r.outage,
	}
}

// all measures part by part until one fails or the time is over: what was measured
// by then counts.
func (r *run) all(t *testing.T) {
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(t.Context(), r.options.limit)
	defer cancel()
	for i, part := range parts() {
		if !r.options.measures(part.name) {
			continue
		}
		isDone := t.Run(part.name, func(of *testing.T) {
			r.t = of
			if part.name != baselinePart && r.agents == nil {
				measure.Say("agents start")
				r.start(t)
			}
			measure.Say("%s: %s", part.name, part.says)
			r.doings()[i]()
		})
		if r.t = t; !isDone {
			r.f.Stopped = fmt.Sprintf("%s: it failed, or the time was over: %v", part.says, r.ctx.Err())
			break
		}
		r.f.Parts = append(r.f.Parts, part.name)
	}
	time.Sleep(settle) // also after a failure: the audit log is written, and what was measured counts
	l := r.readLog()
	for _, evaluate := range r.later {
		evaluate(l)
	}
}

// spell measures what happens while do runs, into s, which must not move.
func (r *run) spell(s *spell, do func()) (w window) {
	_, _, changes := r.view.now()
	w.From = time.Now()
	s.Cost = r.during(do)
	_, _, after := r.view.now()
	s.Seconds, s.TaintChanges = s.Cost.Seconds, after-changes
	w.To = w.From.Add(time.Duration(s.Seconds * float64(time.Second)))
	report := command{Op: "report", From: w.From, To: w.To}
	r.must(r.foreign.tell(report, &s.Foreign), r.kubelets.tell(report, &s.Leases))
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		s.Requests, s.Peak, s.PerAgent = len(own), own.peak(), map[string]float64{}
		for kind, count := range own.byKind() {
			s.PerAgent[kind] = float64(count) / float64(len(r.nodes))
		}
		s.TooMany, s.Failed = own.refused()
	})
	return w
}

// start starts the agents, and waits until what their start caused is over.
func (r *run) start(t *testing.T) {
	r.agents = r.startChild(t, agentsKind, r.setup)
	r.spell(&r.f.Start, func() {
		r.must(r.agents.tell(command{Op: "start", Over: r.options.ramp, Count: len(r.nodes)}, nil))
		r.configured = time.Now()
		r.pause(3 * settle)
	})
	if !r.options.measures("idle") {
		r.pause(time.Minute)
	}
}

// taint makes the memory of the first so many Nodes bad and that of all others well, and
// waits until exactly these are tainted.
func (r *run) taint(count int) {
	if count > r.bad {
		r.level("Degraded", r.bad, count-r.bad)
	} else if count < r.bad {
		r.level("OK", count, r.bad-count)
	}
	r.bad = count
	r.untilTainted(count)
}

// brakeAt gives all agents this fleet brake, if they have another.
func (r *run) brakeAt(percent int) {
	if r.brake != percent {
		r.reconfigure(percent)
	}
}

// reconfigure changes the configuration, waits until it is in force on all, and returns
// how long that took.
func (r *run) reconfigure(brake int) time.Duration {
	const inForce = "configuration in force"
	before, begin := r.report(), time.Now()
	r.must(r.configure(brake))
	r.eventually(func() error {
		if done := r.report().Log[inForce] - before.Log[inForce]; done < len(r.nodes) {
			return fmt.Errorf("it is in force on %d nodes", done)
		}
		return nil
	})
	r.configured = time.Now()
	return time.Since(begin)
}

// baseline measures the cluster without agents.
func (r *run) baseline() {
	r.pause(settle)
	quiet := func() { r.pause(r.options.base) }
	r.f.Base = r.during(quiet)
	w := r.startChild(r.t, watchesKind, r.setup)
	r.must(w.tell(command{Op: "start"}, nil))
	r.pause(settle)
	r.f.Watches = r.during(quiet)
	r.must(w.end())
}

// idle measures what the agents do while nothing happens.
func (r *run) idle() {
	before, q, s := r.report(), &r.f.Quiet, &spell{}
	w := r.spell(s, func() { r.pause(r.options.idle) })
	after := r.report()
	perHour := float64(len(r.nodes)) * w.hours()
	q.Seconds, q.Sent, q.Received = s.Seconds, float64(after.Sent-before.Sent)/perHour, float64(after.Received-before.Received)/perHour
	q.TooMany = int(after.TooMany - before.TooMany)
	q.Foreign, q.Leases, r.f.Idle = s.Foreign, s.Leases, s.Cost
	r.later = append(r.later, func(l log) {
		own := l.of(bed.User, w)
		q.PerHour, q.Heartbeats = map[string]float64{}, own.heartbeats()
		for kind, count := range own.byKind() {
			q.PerHour[kind] = float64(count) / perHour
		}
	})
}

// rollOut gives all agents a configuration without the fleet brake.
func (r *run) rollOut() {
	r.taint(0)
	o := &r.f.Rollout
	r.spell(&o.spell, func() { o.InForce = r.reconfigure(0) })
	r.later = append(r.later, func(log) { o.PerAgent = float64(o.Requests) / float64(len(r.nodes)) })
	r.pause(settle)
}

// zones is how many zones there are.
const zones = 3

// braked is a mass incident while the fleet brake is on, and no longer cautious.
func (r *run) braked(name string, step int) {
	r.brakeAt(r.options.brake)
	r.pause(time.Until(r.configured.Add(cautiousFor)))
	r.incident(name, step)
}

// unbraked is a mass incident without the fleet brake.
func (r *run) unbraked(name string, step int) {
	r.brakeAt(0)
	r.incident(name, step)
}

// cautious gives all agents the fleet brake again, and makes all hosts bad while it
// is cautious.
func (r *run) cautious() {
	r.reconfigure(r.options.brake)
	r.incident("brake on, just rolled out", 1)
}

// incident makes the memory of all hosts, or of every so many, bad at the same moment,
// measures what follows, and makes it well again.
func (r *run) incident(name string, step int) {
	r.taint(0)
	in := &incident{Name: name, Bad: (len(r.nodes) + step - 1) / step}
	r.f.Incidents = append(r.f.Incidents, in)
	var last time.Time
	before := r.report()
	w := r.spell(&in.spell, func() {
		r.must(r.agents.tell(command{Op: "level", Level: "Degraded", Count: len(r.nodes), Step: step}, nil))
		r.pause(r.options.observed)
		in.Tainted, last, _ = r.view.now()
	})
	if in.Tainted > 0 {
		in.Last = last.Sub(w.From)
	}
	after := r.report()
	in.Sent, in.Received = after.Sent-before.Sent, after.Received-before.Received
	well := time.Now()
	r.level("OK", 0, len(r.nodes))
	r.untilTainted(0)
	in.Cleared = time.Since(well)
	r.pause(settle)
}

const (
	// untold is how long what has changed may wait to be told: updatesWithin in
	// agent/decide.
	untold = time.Minute
	// batches is in how many parts a rolling restart goes through the fleet: the
	// DaemonSet's maxUnavailable is 10 %.
	batches = 10
)

// restartAll restarts all agents, a tenth at a time, while all Nodes are tainted. Their
// EndpointSlices are written as the pods go and come.
func (r *run) restartAll() {
	r.brakeAt(0)
	r.taint(len(r.nodes))
	r.pause(untold) // what the incident left to tell
	s := &r.f.Restart
	s.Held, _, _ = r.view.now()
	started, writes := map[string]time.Time{}, r.settled()
	w := r.spell(&s.spell, func() {
		r.restartBatches(started)
		r.pause(2 * settle)
	})
	s.SliceWrites = r.settled() - writes
	r.later = append(r.later, func(l log) {
		again := l.of(bed.User, w).since(started).done() // who met a newer version of the Node wrote nothing
		node, status := again.only("patch", "nodes"), again.only("patch", "nodes/status").early(l.of(bed.User, window{To: w.To}).done())
		s.MostWrites, s.MostStatus, s.MostInAll = most(node), most(status), most(slices.Concat(node, status))
	})
}

// restartBatches restarts one batch after another. It keeps when each agent was started.
func (r *run) restartBatches(started map[string]time.Time) {
	begin, n := time.Now(), len(r.nodes)
	for batch := range batches {
		r.pause(time.Until(begin.Add(r.options.restart * time.Duration(batch) / batches)))
		first := n * batch / batches
		count := n*(batch+1)/batches - first
		r.slices.change(first, count, terminating)
		r.settled()
		r.must(r.agents.tell(command{Op: "restart", First: first, Count: count}, &started))
		for _, state := range podStates() {
			r.slices.change(first, count, state)
			r.settled()
		}
	}
	r.f.Restart.Took = time.Since(begin)
}

func most(l log) int {
	most := 0
	for _, count := range l.byNode() {
		most = max(most, count)
	}
	return most
}

// rewritten measures what idle agents ask for after all their EndpointSlices have
// changed, as a roll-out of the DaemonSet changes them.
func (r *run) rewritten() {
	r.taint(0)
	s, writes := &r.f.Slices, r.settled()
	r.spell(&s.spell, func() {
		for _, state := range podStates() {
			r.slices.change(0, len(r.nodes), state)
			r.settled()
		}
		r.pause(r.options.refresh)
	})
	s.Writes = r.settled() - writes
}

// outage kills the API server and starts it again.
func (r *run) outage() {
	r.taint(0)
	r.pause(untold) // what is yet to be told of the last incident is no news of the crash
	o := &r.f.Outage
	w := r.spell(&o.spell, func() {
		begin := time.Now()
		r.must(r.cluster.RestartAPIServer(r.ctx))
		o.Down = time.Since(begin)
		r.pause(2 * r.options.observed)
	})
	r.later = append(r.later, func(l log) {
		back := map[string]time.Time{}
		for _, request := range l.of(bed.User, w).only("watch", "nodes") {
			if _, known := back[nodeOf(request)]; !known && request.ResponseStatus.Code == http.StatusOK {
				back[nodeOf(request)] = request.RequestReceivedTimestamp
				o.Back = request.RequestReceivedTimestamp.Sub(w.From)
			}
		}
		if len(back) < len(r.nodes) {
			o.Back = -1
		}
	})
}
