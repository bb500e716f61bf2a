package footprint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	"github.com/taintlet/taintlet/test/process"
)

const (
	// sampleEvery is how often the memory is read.
	sampleEvery = 5 * time.Second
	// startPatience is how long a program may take to be ready.
	startPatience = 2 * time.Minute
	// askEvery is how often a program that starts is asked whether it is ready.
	askEvery = 2 * time.Millisecond
	// endsWithin is how long a program may take to end when it is asked to.
	endsWithin = 10 * time.Second
	// samplesSeries begins each line that counts samples.
	samplesSeries = "taintlet_probe_samples_total{"
)

// measure sets up the cluster, and measures both programs on its first host.
func (s *spec) measure(ctx context.Context, say func(format string, args ...any)) (f *Figures, err error) {
	st := &stage{spec: s, say: say}
	defer func() { err = errors.Join(err, st.tearDown()) }()
	if err := st.setUp(ctx); err != nil {
		return nil, err
	}
	f = &Figures{Seconds: s.Measured.Seconds(), WarmUp: s.WarmUp.Seconds()}
	first := st.hosts[0]
	subjects := []*subject{
		{
			program: &f.Taintlet, port: bed.AgentPort, ready: "/readyz",
			start: func() (*process.Process, error) { return st.startAgent(first) },
			// A sample that could not tell is one too.
			sampled: func(page string) bool {
				for line := range strings.Lines(page) {
					if strings.HasPrefix(line, samplesSeries) && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
						return true
					}
				}
				return false
			},
		},
		{
			program: &f.Exporter, port: exporterPort, ready: "/",
			start:   func() (*process.Process, error) { return st.startExporter(first) },
			sampled: func(page string) bool { return strings.Contains(page, "node_memory_MemAvailable_bytes") },
		},
	}
	f.Taintlet.describe(s.Agent)
	f.Exporter.describe(s.Exporter)
	for _, u := range subjects {
		if err := st.timeStarts(ctx, first, u); err != nil {
			return nil, err
		}
	}
	return f, st.steady(ctx, f, subjects)
}

func (p *Program) describe(b built) {
	const megabyte = 1e6
	p.Version, p.Binary, p.Image = b.Version, float64(b.Binary)/megabyte, float64(b.Image)/megabyte
}

// subject is a program that is measured.
type subject struct {
	program *Program
	port    int
	ready   string // the page that says that it is ready
	start   func() (*process.Process, error)
	sampled func(page string) bool // whether a page of metrics has a sample

	process *process.Process
	scraper *scraper
	usages  []process.Usage
}

// startAgent starts the agent of a host as the manifest does.
func (s *stage) startAgent(h *host) (*process.Process, error) {
	folder := s.folder(h)
	command := process.Command(s.spec.Agent.Path, "--config="+filepath.Join(folder, "config.yaml"),
		"--kubeconfig="+filepath.Join(folder, "kubeconfig"), fmt.Sprintf("--listen=:%d", bed.AgentPort))
	command.Env = s.agents.Env(h.Name, h.Address.String())
	return h.run("the agent of "+h.Name, command, filepath.Join(folder, "agent.log"))
}

// startExporter starts node_exporter with its defaults.
func (s *stage) startExporter(h *host) (*process.Process, error) {
	command := process.Command(s.spec.Exporter.Path, fmt.Sprintf("--web.listen-address=:%d", exporterPort))
	command.Env = []string{}
	return h.run("node_exporter", command, filepath.Join(s.folder(h), "exporter.log"))
}

// timeStarts starts a program again and again, and keeps how long it took.
func (s *stage) timeStarts(ctx context.Context, h *host, u *subject) error {
	var first, ready []float64
	for range s.spec.Starts {
		began := time.Now()
		p, err := u.start()
		if err != nil {
			return err
		}
		sampled, isReady, err := timeStart(ctx, h, u, p, began)
		if err := errors.Join(err, p.Stop(endsWithin)); err != nil {
			return err
		}
		first, ready = append(first, sampled.Seconds()), append(ready, isReady.Seconds())
	}
	u.program.FirstSample, u.program.Ready = median(first), median(ready)
	s.say("%s: first sample %.3f s after the start, ready after %.3f s; medians of %d", url(u.port, ""), u.program.FirstSample, u.program.Ready, s.spec.Starts)
	return nil
}

// timeStart waits until a program has taken a sample and is ready.
func timeStart(ctx context.Context, h *host, u *subject, p *process.Process, began time.Time) (sampled, ready time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for sampled == 0 || ready == 0 {
		if ready == 0 {
			if _, err = scrape(ctx, h.client, url(u.port, u.ready)); err == nil {
				ready = time.Since(began)
			}
		}
		if sampled == 0 {
			var page []byte
			if page, err = scrape(ctx, h.client, url(u.port, "/metrics")); err == nil && u.sampled(string(page)) {
				sampled = time.Since(began)
			}
		}
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("%s is not ready: %w\n%s", p.Name(), errors.Join(ctx.Err(), err), p.Tail(10))
		case <-p.Ended():
			return 0, 0, p.Err()
		case <-time.After(askEvery):
		}
	}
	return sampled, ready, nil
}

// steady measures both programs at the same time, in their steady state, while
// agents run on all other hosts.
func (s *stage) steady(ctx context.Context, f *Figures, subjects []*subject) error {
	for _, h := range s.hosts[1:] {
		p, err := s.startAgent(h)
		if err != nil {
			return err
		}
		s.running = append(s.running, p)
	}
	scraping, stop := context.WithCancel(ctx)
	defer stop()
	first := s.hosts[0]
	for _, u := range subjects {
		p, err := u.start()
		if err != nil {
			return err
		}
		u.process, s.running = p, append(s.running, p)
		if _, _, err := timeStart(ctx, first, u, p, time.Now()); err != nil {
			return err
		}
		u.scraper = startScraper(scraping, first.client, url(u.port, "/metrics"))
	}
	s.say("%d agents and node_exporter run; %v to warm up, then %v are measured", len(s.hosts), s.spec.WarmUp, s.spec.Measured)
	if err := process.Pause(ctx, s.spec.WarmUp); err != nil {
		return err
	}
	began := time.Now()
	length, err := sample(ctx, subjects, s.spec.Measured)
	if err != nil {
		return err
	}
	stop()
	f.Seconds = time.Since(began).Seconds()
	for _, u := range subjects {
		<-u.scraper.done
		if u.scraper.err != nil {
			return fmt.Errorf("%s: %w\n%s", u.process.Name(), u.scraper.err, u.process.Tail(10))
		}
		f.Scrapes, u.program.Page = u.scraper.count, len(u.scraper.page)
		u.program.sum(u.usages, length)
	}
	// What answered, and not what was started: a figure without peers would flatter.
	f.Peers = int(bed.Metric(subjects[0].scraper.page, `taintlet_peers{state="answered"}`))
	if want := len(s.hosts) - 1; f.Peers != want {
		f.LeftOut = fmt.Sprintf("%d peers, which did not answer", want-f.Peers)
		s.say("left out: %s", f.LeftOut)
	}
	return nil
}

// sample reads what the programs use until the time is over, and returns the time
// between the first and the last sample.
func sample(ctx context.Context, subjects []*subject, measured time.Duration) (time.Duration, error) {
	began := time.Now()
	for {
		at := time.Since(began)
		for _, u := range subjects {
			if err := u.process.Err(); err != nil {
				return 0, err
			}
			usage, err := process.UsageOf(u.process.PID())
			if err != nil {
				return 0, err
			}
			u.usages = append(u.usages, usage)
		}
		if at >= measured {
			return at, nil
		}
		if err := process.Pause(ctx, min(sampleEvery, measured-at)); err != nil {
			return 0, err
		}
	}
}
