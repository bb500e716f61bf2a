package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	secondsADay = 24 * 3600
	// mayTake bounds a run, as a multiple of the time that it should take.
	mayTake = 2.5
	// Kubelet and peers ask this often, in seconds.
	healthzPeriod, readyzPeriod, peerPeriod = 30, 10, 5
)

// week is an accelerated run: so many days of samples of memory, with incidents.
type week struct {
	*stage
	f        *figures
	seconds  float64 // that the run stands for
	host     *fixtures.Host
	hasRoot  bool // of its own, which may be filled
	gate     *cluster.Gate
	agent    *process.Process
	scraper  *scraper
	own      string // the agent's configuration, a file
	tokens   string // the agent's token file
	ofPeers  string // the program of the peers, at their own pace
	peers    [1 + peers]*process.Process
	answered atomic.Int64
	// Each lane has dice of its own, so that a seed says what happens.
	hostDice, outsideDice *rand.Rand

	// over is how much of the run is over, as the bits of a float64.
	over atomic.Uint64

	mu   sync.Mutex
	done map[string]int
}

// days runs the days of an agent, with all its periods divided.
func (s *stage) days(f *figures) {
	f.Mode, f.Seed, f.Pace = fmt.Sprintf("%g accelerated days", *daysOfWork), *seed, pace
	w := &week{
		stage: s, f: f, seconds: *daysOfWork * secondsADay, done: map[string]int{},
		hostDice: rand.New(rand.NewPCG(*seed, 1)), outsideDice: rand.New(rand.NewPCG(*seed, 2)), //nolint:gosec // not secrets
	}
	w.begin()
	should := time.Duration(w.seconds / pace * float64(time.Second))
	measure.Say("%s of the agent begin, seed %d; they should take %s; process %d", f.Mode, *seed, should.Round(time.Second), w.agent.PID())
	limited, cancel := context.WithTimeout(s.t.Context(), time.Duration(mayTake*float64(should)))
	defer cancel()
	begin := time.Now()
	err := w.live(limited)
	f.Took = time.Since(begin)
	s.must(err)
	w.end()
}

// begin starts the host, the agents and what stands between them and the API server.
func (w *week) begin() {
	w.newHost()
	w.ofPeers = w.program("shipped", manyAnswers())
	swaps := slices.Concat(periods(), bounds())
	if *leak != "" {
		swaps = append(swaps, leaks()[*leak])
		w.f.Mode += " with a leak of " + *leak
	}
	faster := w.program("faster", swaps...)
	for number := 1; number <= peers; number++ {
		var err error
		w.peers[number], err = w.runPeer(w.ofPeers, number)
		w.must(err)
	}
	w.own = filepath.Join(w.folder, "watched.yaml")
	w.must(w.configure(variants()[0]))
	as, err := w.identity()
	w.must(err)
	w.agent, err = w.run(faster, 0, as, w.own, w.host.Flags()...)
	w.must(err)
	w.scraper = newScraper(w.address())
	w.must(w.awaitReady(w.t.Context(), w.agent))
}

// rootSize is the size of the host's root file system, in bytes.
const rootSize = 32 << 20

// newHost makes a healthy host of files that the agents' user may read. Its root
// is a small file system of its own where this program may mount one.
func (w *week) newHost() {
	if w.hasRoot = os.Getuid() == 0; w.hasRoot {
		root := filepath.Join(w.folder, "root")
		w.must(os.Mkdir(root, 0o755)) //nolint:gosec // the agent is another user
		w.must(syscall.Mount("tmpfs", root, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", rootSize)))
		w.t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) })
		w.host = fixtures.NewHostOn(w.t, root)
	} else {
		w.host = fixtures.NewHost(w.t)
	}
	// How long tasks wait is that of this machine: the kernel wakes the probes.
	w.must(os.Symlink("/proc/pressure", filepath.Join(w.host.Dir, "proc", "pressure")))
	w.must(bed.GiveToAgents(filepath.Join(w.host.Root, "scratch")))
}

// fill takes all but a little of the host's root file system, or gives it back.
func (w *week) fill(full bool) error {
	path := filepath.Join(w.host.Root, "ballast")
	if !full {
		return os.Remove(path)
	}
	ballast, err := os.Create(path)
	if err != nil {
		return err
	}
	defer ballast.Close() //nolint:errcheck // nothing was written through it
	return syscall.Fallocate(int(ballast.Fd()), 0, 0, rootSize*96/100)
}

// identity is who the watched agent is: with a token in a file, as in a pod, and
// through a gate that can cut its connections.
func (w *week) identity() (*rest.Config, error) {
	w.tokens = filepath.Join(w.folder, "token")
	if err := w.rotate(w.t.Context()); err != nil {
		return nil, err
	}
	as := w.cluster.WithToken("")
	w.gate = cluster.NewGateAt(w.t, fmt.Sprintf("127.0.0.1:%d", w.ports[1+peers]), strings.TrimPrefix(as.Host, "https://"))
	w.gate.Open()
	as.Host, as.BearerTokenFile = "https://"+w.gate.Address, w.tokens
	return as, nil
}

// rotate writes a new token, as a kubelet does. It is valid for ten minutes, the
// least that the API server gives.
func (w *week) rotate(ctx context.Context) error {
	token, err := w.cluster.TokenOn(ctx, bed.Namespace, bed.Account, watchedNode, 10*time.Minute)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(w.tokens+".new", []byte(token), 0o600), bed.GiveToAgents(w.tokens+".new")); err != nil {
		return err
	}
	return os.Rename(w.tokens+".new", w.tokens)
}

// live runs everything at once until all samples were taken.
func (w *week) live(ctx context.Context) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	fails := func(do func(context.Context) error) {
		group.Go(func() {
			if err := do(running); err != nil && running.Err() == nil {
				stop(err)
			}
		})
	}
	fails(func(ctx context.Context) error { return w.lane(ctx, w.hostIncidents()) })
	fails(func(ctx context.Context) error { return w.lane(ctx, w.outsideIncidents()) })
	fails(func(ctx context.Context) error { return each(ctx, scrapePeriod, w.scrape) })
	fails(func(ctx context.Context) error { return each(ctx, healthzPeriod, w.asks("/healthz")) })
	fails(func(ctx context.Context) error { return each(ctx, readyzPeriod, w.asks("/readyz")) })
	fails(func(ctx context.Context) error { return each(ctx, peerPeriod, w.asks("/peer")) })
	err := w.observeAll(running)
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		err = cause
	}
	stop(nil)
	group.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the run takes too long: %.0f %% are over", 100*w.progress())
	}
	return err
}

// each does something in a period of the week, in seconds. It does not catch up.
func each(ctx context.Context, period float64, do func(context.Context)) error {
	tick := time.NewTicker(time.Duration(period / pace * float64(time.Second)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			do(ctx)
		}
	}
}

// scrape asks for the metrics, and learns from them how much of the run is over.
func (w *week) scrape(ctx context.Context) {
	if err := w.scraper.scrape(ctx); err != nil {
		return // counted
	}
	samples := w.scraper.sum("taintlet_probe_samples_total", `condition="`+string(probes.MemoryPressure)+`"`)
	w.over.Store(math.Float64bits(samples / w.seconds))
}

func (w *week) progress() float64 { return math.Float64frombits(w.over.Load()) }

// asks returns what asks for a page, on a connection of its own.
func (w *week) asks(path string) func(context.Context) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) {
		if _, err := process.Get(ctx, client, "http://"+w.address()+path); err == nil {
			w.answered.Add(1)
		}
	}
}

// observations is about how many there are of a run.
const observations = 1200

// observeAll observes the agent until the run is over.
func (w *week) observeAll(ctx context.Context) error {
	tick, tenth := time.NewTicker(time.Duration(w.seconds/pace/observations*float64(time.Second))), 0
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.agent.Ended():
			w.f.Ended = fmt.Sprintf("it ended when %.0f %% were over: %v", 100*w.progress(), w.agent.Err())
			return nil
		case <-tick.C:
		}
		one, err := observe(w.agent.PID())
		if err != nil {
			return err
		}
		one.At = w.progress()
		if one.At >= 1 {
			return nil
		}
		one = w.scraper.complete(one)
		w.f.Samples = append(w.f.Samples, one)
		if now := int(one.At * 10); now > tenth {
			tenth = now
			measure.Say("%d tenths are over: %.2f MiB anonymous, %d goroutines, %d descriptors", tenth, float64(one.Anon)/mebibyte, one.Goroutines, one.Descriptors)
		}
	}
}

// lane makes planned incidents, one after another.
func (w *week) lane(ctx context.Context, all []incident) error {
	kinds, perDay := map[string]incident{}, map[string]float64{}
	for _, i := range all {
		kinds[i.kind], perDay[i.kind] = i, i.perDay
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, next := range plan(*seed, *daysOfWork, perDay) {
		for w.progress() < next.At {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
		if w.progress() > quietFrom {
			return nil // what is left is not made, and not counted
		}
		untilQuiet := time.Duration((quietFrom - w.progress()) * w.seconds / pace * float64(time.Second))
		if i := kinds[next.Kind]; i.felt < untilQuiet { // or the last tenth would feel it
			w.play(ctx, i)
		}
	}
	return nil
}

// play makes one incident, and notes what became of it.
func (w *week) play(ctx context.Context, i incident) {
	limited, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	err := i.play(limited)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[i.kind]++
	if err != nil {
		failed := fmt.Sprintf("%s, at %.1f %%: %v", i.kind, 100*w.progress(), err)
		measure.Say("incident: %.500s", failed)
		w.f.Failures = append(w.f.Failures, failed)
	}
}

// end takes stock of what was done, and of the Node.
func (w *week) end() {
	requests, err := w.requests()
	w.must(err)
	w.f.Work = append(w.scraper.work(w.seconds), work{"answers to a kubelet and one more peer", float64(w.answered.Load()),
		w.seconds/healthzPeriod + w.seconds/readyzPeriod + w.seconds/peerPeriod})
	w.f.Work, w.f.Incidents, w.f.Taints = append(w.f.Work, requests...), w.done, w.taints()
	for _, c := range w.cluster.GetNode(w.t, watchedNode).Status.Conditions {
		if strings.HasPrefix(string(c.Type), "Host") && c.Status != corev1.ConditionFalse {
			w.f.Failures = append(w.f.Failures, fmt.Sprintf("%s is %s at the end: %s", c.Type, c.Status, c.Message))
		}
	}
}

// requests are those of the watched agent, by the audit log.
func (w *week) requests() ([]work, error) {
	all, err := w.cluster.Requests(bed.User)
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, r := range cluster.Once(all) {
		counts[r.Verb+" "+r.Resource()]++
	}
	due := map[string]float64{
		"patch nodes/status": w.seconds / heartbeatPeriod, "watch nodes": w.seconds / watchPeriod,
		"list endpointslices":                 3 * w.seconds / refreshPeriod, // of the agents, and of DNS pods by label and by name
		"get mutatingadmissionpolicybindings": w.seconds / heartbeatPeriod,
	}
	var list []work
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, work{"requests: " + kind, counts[kind], due[kind]})
	}
	return list, nil
}
