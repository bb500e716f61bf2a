package bench

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

// What taintlet costs a host as a whole process, beside prometheus/node_exporter on the same
// host at the same time. Both run as a DaemonSet would run them, and both are scraped every
// 15 s. taintlet has peers: agents on hosts that are network namespaces (test/bed), with DNS
// and a real control plane, so that it asks all that it asks in a cluster. That needs root.

// footprint is what was measured.
type footprint struct {
	Seconds, WarmUp float64
	// Peers of the agent, and how often each program was scraped meanwhile.
	Peers, Scrapes int
	// LeftOut says what is not on, and why.
	LeftOut            string
	Taintlet, Exporter program
}

// program is one of the two. Quantities over time are medians but for the CPU.
type program struct {
	Version        string
	RSS, Anonymous float64 // MiB
	MostRSS        float64 // MiB
	CPU            float64 // seconds an hour
	Threads        float64
	Descriptors    float64
	Binary, Image  float64 // MB
	Page           int     // bytes of a scrape
	// FirstSample and Ready are seconds from the start of the process.
	FirstSample, Ready float64
}

const (
	exporterModule = "github.com/prometheus/node_exporter"
	exporterPort   = 9100
	// bedHosts is how many hosts the bed has: as many as it can.
	bedHosts = 8
	// sampleUsage is how often the memory is read.
	sampleUsage = 5 * time.Second
	// startPatience is how long a program may take to be ready.
	startPatience = 2 * time.Minute
	// askEvery is how often a program that starts is asked whether it is ready.
	askEvery = 2 * time.Millisecond
	// scrapeEvery is how often a Prometheus asks, in most clusters.
	scrapeEvery = 15 * time.Second
	// accept is what Prometheus 3 sends by default.
	accept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
		"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	// insideEnv names the file with what TestFootprintInside is told.
	insideEnv = "TAINTLET_FOOTPRINT"
)

// spec is what the process is told that measures in namespaces.
type spec struct {
	Folder           string
	Agent, Exporter  string // programs
	WarmUp, Measured time.Duration
	Starts           int
	Footprint        *footprint // and what it says
}

// measureFootprint builds both programs and measures them in a process that has a network of
// its own. The agent is built as for its image; a test of package build compares the flags.
func measureFootprint(t *testing.T, o *options, commit string) *footprint {
	t.Helper()
	must(t, bed.CheckNamespaces())
	_, err := cluster.Build(t.Context(), os.Stderr)
	must(t, err)
	s := &spec{Folder: t.TempDir(), WarmUp: o.warmUp, Measured: o.measured, Starts: o.starts, Footprint: &footprint{Seconds: o.measured.Seconds(), WarmUp: o.warmUp.Seconds()}}
	for folder := s.Folder; folder != os.TempDir(); folder = filepath.Dir(folder) {
		must(t, os.Chmod(folder, 0o755)) //nolint:gosec // the agents are not root
	}
	s.Agent, err = process.BuildAgent(t.Context(), s.Folder, process.BuildOptions{Release: true})
	must(t, err)
	nested := "../../exporter"
	s.Exporter, err = process.BuildOther(t.Context(), nested, exporterModule, s.Folder)
	must(t, err)
	text, err := process.Output(t.Context(), nested, nil, "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", exporterModule)
	must(t, err)
	version, source, _ := strings.Cut(strings.TrimSpace(text), " ")
	f := s.Footprint
	f.Taintlet.Version, f.Exporter.Version = commit, version
	must(t, f.Taintlet.weigh(s.Agent, "../../../LICENSE"), f.Exporter.weigh(s.Exporter, filepath.Join(source, "LICENSE")))
	file := filepath.Join(s.Folder, "spec.json")
	told, err := json.Marshal(s)
	must(t, err, os.WriteFile(file, told, 0o600))
	command := exec.Command("/proc/self/exe", "-test.run=^TestFootprintInside$")
	command.Env = append(os.Environ(), insideEnv+"="+file)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	p, err := bed.StartInNamespaces("the process in namespaces", command)
	must(t, err)
	t.Cleanup(func() { _ = p.Stop(30 * time.Second) }) // it has ended, unless the test failed
	must(t, p.Wait())
	said, err := os.ReadFile(file)
	must(t, err, json.Unmarshal(said, s))
	return s.Footprint
}

// must ends the test with the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// weigh reads the sizes: that of the binary, and that of an image of it and its licence as a
// registry has it, compressed.
func (p *program) weigh(binary, licence string) error {
	const megabyte = 1e6
	var image bytes.Buffer
	packed := gzip.NewWriter(&image)
	archive := tar.NewWriter(packed)
	for _, path := range []string{binary, licence} {
		content, err := os.ReadFile(path) //nolint:gosec // our own file
		if err != nil {
			return err
		}
		if path == binary {
			p.Binary = float64(len(content)) / megabyte
		}
		if err := archive.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o755, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	err := errors.Join(archive.Close(), packed.Close())
	p.Image = float64(image.Len()) / megabyte
	return err
}

// sum turns the samples of a process into figures. The first one and the last one
// tell its CPU time.
func (p *program) sum(samples []process.Usage, length time.Duration) {
	column := func(of func(process.Usage) float64) (all []float64) {
		for _, u := range samples {
			all = append(all, of(u))
		}
		return all
	}
	rss := column(func(u process.Usage) float64 { return float64(u.RSS) / mebibyte })
	p.RSS, p.MostRSS = middle(rss), slices.Max(rss)
	p.Anonymous = middle(column(func(u process.Usage) float64 { return float64(u.Anonymous) / mebibyte }))
	p.Threads = middle(column(func(u process.Usage) float64 { return float64(u.Threads) }))
	p.Descriptors = middle(column(func(u process.Usage) float64 { return float64(u.Descriptors) }))
	p.CPU = (samples[len(samples)-1].CPU - samples[0].CPU).Hours() / length.Hours() * 3600
}

// middle is the median.
func middle[T time.Duration | float64](values []T) T {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[T])
	at := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[at]
	}
	return (sorted[at-1] + sorted[at]) / 2
}

// rows are the table: name, both programs' values and their ratio.
func (f *footprint) rows() (rows [][4]string) {
	for _, r := range []struct {
		name, format string
		of           func(*program) float64
	}{
		{"RSS", "%.1f MiB", func(p *program) float64 { return p.RSS }},
		{"RSS, most", "%.1f MiB", func(p *program) float64 { return p.MostRSS }},
		{"anonymous RSS", "%.1f MiB", func(p *program) float64 { return p.Anonymous }},
		{"CPU time an hour", "%.2f s", func(p *program) float64 { return p.CPU }},
		{"threads", "%.0f", func(p *program) float64 { return p.Threads }},
		{"open descriptors", "%.0f", func(p *program) float64 { return p.Descriptors }},
		{"binary", "%.1f MB", func(p *program) float64 { return p.Binary }},
		{"image, compressed", "%.1f MB", func(p *program) float64 { return p.Image }},
		{"page of a scrape", "%.0f kB", func(p *program) float64 { return float64(p.Page) / 1000 }},
		{"start to first sample", "%.0f ms", func(p *program) float64 { return 1000 * p.FirstSample }},
		{"start to ready", "%.0f ms", func(p *program) float64 { return 1000 * p.Ready }},
	} {
		own, other, ratio := r.of(&f.Taintlet), r.of(&f.Exporter), "-"
		if other != 0 {
			ratio = fmt.Sprintf("%.2f", own/other)
		}
		rows = append(rows, [4]string{r.name, fmt.Sprintf(r.format, own), fmt.Sprintf(r.format, other), ratio})
	}
	return rows
}

// inside is a cluster with a Node and an identity for each host of a bed.
type inside struct {
	*spec
	t       *testing.T
	network *bed.Network
	cluster *cluster.Cluster
	shipped *bed.Manifest
	client  *http.Client // on the first host
}

// TestFootprintInside is the part of TestBench that runs in namespaces. It measures both
// programs on the first host.
func TestFootprintInside(t *testing.T) {
	file := os.Getenv(insideEnv)
	if file == "" {
		t.Skip("it is a part of TestBench")
	}
	i := &inside{spec: &spec{}, t: t}
	told, err := os.ReadFile(file) //nolint:gosec // our own file
	must(t, err, json.Unmarshal(told, i.spec))
	i.setUp()
	subjects := []*contender{
		{
			program: &i.Footprint.Taintlet, port: bed.AgentPort, ready: "/readyz",
			start: func() *process.Process { return i.startAgent(i.network.Hosts[0]) },
			// A sample that could not tell is one too.
			sampled: func(page string) bool { return bed.Sum(page, "taintlet_probe_samples_total") > 0 },
		},
		{
			program: &i.Footprint.Exporter, port: exporterPort, ready: "/",
			start:   i.startExporter,
			sampled: func(page string) bool { return strings.Contains(page, "node_memory_MemAvailable_bytes") },
		},
	}
	for _, c := range subjects {
		i.timeStarts(c)
	}
	i.steady(subjects)
	said, err := json.Marshal(i.spec)
	must(t, err, os.WriteFile(file, said, 0o600))
}

func (i *inside) setUp() {
	i.t.Helper()
	ctx := i.t.Context()
	var err error
	i.network, err = bed.NewNetwork(i.Folder, bedHosts)
	must(i.t, err)
	i.t.Cleanup(i.network.Close)
	i.cluster = cluster.New(i.t, cluster.Options{Address: bed.Gateway})
	must(i.t, i.cluster.InstallRules(ctx), i.cluster.InstallKeep(ctx))
	i.shipped, err = bed.ShippedManifest()
	must(i.t, err)
	at, err := netip.ParseAddrPort(strings.TrimPrefix(i.cluster.URL(), "https://"))
	must(i.t, err)
	agents := bed.NewSlice(bed.Namespace, "taintlet", "taintlet", "metrics", bed.AgentPort)
	dns := bed.NewSlice(metav1.NamespaceSystem, "kube-dns", "kube-dns", "dns-tcp", bed.DNSPort)
	own := bed.NewSlice(metav1.NamespaceDefault, "kubernetes", "kubernetes", "https", at.Port())
	bed.AddEndpoint(own, i.network.Hosts[0].Name, at.Addr().String())
	for _, h := range i.network.Hosts {
		_, err := i.cluster.RegisterNode(ctx, h.Name)
		must(i.t, err)
		identity, err := bed.IdentityOn(ctx, i.cluster, h.Name)
		must(i.t, err, os.MkdirAll(i.of(h, ""), 0o755)) //nolint:gosec // agents are not root
		_, err = i.shipped.WriteConfig(i.of(h, ""))
		must(i.t, err, bed.WriteIdentity(i.of(h, "kubeconfig"), identity))
		bed.AddEndpoint(agents, h.Name, h.Address.String())
	}
	for _, h := range i.network.DNS {
		bed.AddEndpoint(dns, h.Name, bed.PodAddress(h.Number).String())
	}
	must(i.t, bed.CreateSlices(ctx, i.cluster, agents, dns, own))
	first := i.network.Hosts[0]
	i.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{ // which keeps connections as Prometheus does
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = first.Do(func() (err error) {
				c, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return c, err
		},
	}}
}

// of is the path of a host's file.
func (i *inside) of(h *bed.Host, name string) string { return filepath.Join(i.Folder, h.Name, name) }

// contender is a program that is measured.
type contender struct {
	program *program
	port    int
	ready   string // the page that says that it is ready
	start   func() *process.Process
	sampled func(page string) bool // whether a page of metrics has a sample

	process *process.Process
	scraper *scraper
	usages  []process.Usage
}

func (c *contender) url(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", c.port, path)
}

// startAgent starts the agent of a host as the manifest does.
func (i *inside) startAgent(h *bed.Host) *process.Process {
	command := process.Command(i.Agent, "--config="+i.of(h, "config.yaml"), "--kubeconfig="+i.of(h, "kubeconfig"), fmt.Sprintf("--listen=:%d", bed.AgentPort))
	command.Env = i.shipped.Env(h.Name, h.Address.String())
	return i.run(h, "the agent of "+h.Name, command)
}

// startExporter starts node_exporter with its defaults.
func (i *inside) startExporter() *process.Process {
	command := process.Command(i.Exporter, fmt.Sprintf("--web.listen-address=:%d", exporterPort))
	command.Env = []string{}
	return i.run(i.network.Hosts[0], "node_exporter", command)
}

// run starts a program as the agents' user.
func (i *inside) run(h *bed.Host, name string, command *exec.Cmd) *process.Process {
	i.t.Helper()
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bed.AgentUID, Gid: bed.AgentUID}}
	p, err := h.Start(name, command, i.of(h, name+".log"))
	must(i.t, err)
	i.t.Cleanup(func() { _ = p.Kill() }) // it may have ended
	return p
}

// timeStarts starts a program again and again, and keeps how long it took.
func (i *inside) timeStarts(c *contender) {
	i.t.Helper()
	var first, ready []float64
	for range i.Starts {
		began := time.Now()
		p := c.start()
		sampled, isReady := i.timeStart(c, p, began)
		must(i.t, p.Stop(10*time.Second))
		first, ready = append(first, sampled.Seconds()), append(ready, isReady.Seconds())
	}
	c.program.FirstSample, c.program.Ready = middle(first), middle(ready)
}

// timeStart waits until a program has taken a sample and is ready.
func (i *inside) timeStart(c *contender, p *process.Process, began time.Time) (sampled, ready time.Duration) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), startPatience)
	defer cancel()
	for sampled == 0 || ready == 0 {
		var err error
		if ready == 0 {
			if _, err = scrape(ctx, i.client, c.url(c.ready)); err == nil {
				ready = time.Since(began)
			}
		}
		if sampled == 0 {
			var page string
			if page, err = scrape(ctx, i.client, c.url("/metrics")); err == nil && c.sampled(page) {
				sampled = time.Since(began)
			}
		}
		select {
		case <-ctx.Done():
			i.t.Fatalf("%s is not ready: %v\n%s", p.Name(), err, p.Tail(10))
		case <-p.Ended():
			i.t.Fatal(p.Err())
		case <-time.After(askEvery):
		}
	}
	return sampled, ready
}

// steady measures both programs at the same time, in their steady state, while
// agents run on all other hosts.
func (i *inside) steady(subjects []*contender) {
	for _, h := range i.network.Hosts[1:] {
		i.startAgent(h)
	}
	scraping, stop := context.WithCancel(i.t.Context())
	defer stop()
	for _, c := range subjects {
		c.process = c.start()
		i.timeStart(c, c.process, time.Now())
		c.scraper = startScraper(scraping, i.client, c.url("/metrics"))
	}
	measure.Say("%d agents and node_exporter run; %v to warm up, then %v are measured", bedHosts, i.WarmUp, i.Measured)
	must(i.t, process.Pause(i.t.Context(), i.WarmUp))
	began := time.Now()
	length := i.sample(subjects)
	stop()
	f := i.Footprint
	f.Seconds = time.Since(began).Seconds()
	for _, c := range subjects {
		<-c.scraper.done
		must(i.t, c.scraper.err)
		f.Scrapes, c.program.Page = c.scraper.count, len(c.scraper.page)
		c.program.sum(c.usages, length)
	}
	// What answered, and not what was started: a figure without peers would flatter.
	f.Peers = int(bed.Metric(subjects[0].scraper.page, `taintlet_peers{state="answered"}`))
	if want := bedHosts - 1; f.Peers != want {
		f.LeftOut = fmt.Sprintf("%d peers, which did not answer", want-f.Peers)
	}
}

// sample reads what the programs use until the time is over, and returns the time
// between the first and the last sample.
func (i *inside) sample(subjects []*contender) time.Duration {
	began := time.Now()
	for {
		at := time.Since(began)
		for _, c := range subjects {
			must(i.t, c.process.Err())
			usage, err := process.UsageOf(c.process.PID())
			must(i.t, err)
			c.usages = append(c.usages, usage)
		}
		if at >= i.Measured {
			return at
		}
		must(i.t, process.Pause(i.t.Context(), min(sampleUsage, i.Measured-at)))
	}
}

// scrape asks for a page as Prometheus does: compressed, if the program can.
func scrape(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	page, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return string(page), err
}

// scraper scrapes a program until its context ends.
type scraper struct {
	done  chan struct{}
	count int    // and the rest may be read when done is closed
	page  string // the last one
	err   error
}

func startScraper(ctx context.Context, client *http.Client, url string) *scraper {
	s := &scraper{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			page, err := scrape(ctx, client, url)
			if ctx.Err() != nil {
				return
			}
			if s.err = err; err != nil {
				return
			}
			s.count, s.page = s.count+1, page
			if process.Pause(ctx, scrapeEvery) != nil {
				return
			}
		}
	}()
	return s
}

func TestSum(t *testing.T) {
	var p program
	p.sum([]process.Usage{
		{CPU: 10 * time.Second, RSS: 10 * mebibyte, Anonymous: 4 * mebibyte, Threads: 5, Descriptors: 9},
		{CPU: 20 * time.Second, RSS: 30 * mebibyte, Anonymous: 6 * mebibyte, Threads: 6, Descriptors: 9},
		{CPU: 11 * time.Second, RSS: 12 * mebibyte, Anonymous: 5 * mebibyte, Threads: 6, Descriptors: 10},
	}, 30*time.Minute)
	if want := (program{RSS: 12, MostRSS: 30, Anonymous: 5, Threads: 6, Descriptors: 9, CPU: 2}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

// The image has program and licence, and is compressed.
func TestWeigh(t *testing.T) {
	write := func(name string, text []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	var p program
	must(t, p.weigh(write("program", make([]byte, 1_000_000)), write("LICENSE", make([]byte, 1000))))
	if p.Binary != 1 || p.Image <= 0 || p.Image > 0.01 {
		t.Errorf("a program of zeros: %+v", p)
	}
	if p.weigh("nowhere", "nowhere") == nil {
		t.Error("a program that is not there has a size")
	}
}
