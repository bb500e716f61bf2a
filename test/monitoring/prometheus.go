// Package monitoring runs a real Prometheus beside agents under a scripted
// incident, asks it all that deploy/monitoring asks, and draws the dashboards.
package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// requirement is what TAINTLET_REQUIRE lists for these tests.
const requirement = "prometheus"

// SkipUnlessRequired skips a test unless TAINTLET_REQUIRE lists prometheus. If it
// does and the host has none, the test fails.
func SkipUnlessRequired(t testing.TB) {
	t.Helper()
	if !cluster.Required(requirement) {
		t.Skip("needs Prometheus: set TAINTLET_REQUIRE=" + requirement)
	}
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v; on Debian: apt-get install -y --no-install-recommends prometheus", err)
		}
	}
}

// Target is one agent to scrape.
type Target struct{ Node, Address string }

// Prometheus is a running Prometheus.
type Prometheus struct {
	t   testing.TB
	url string
}

// scrapeInterval is the least that makes pictures of an incident of a minute.
const scrapeInterval = time.Second

// StartPrometheus starts one for the length of the test that scrapes the targets and
// evaluates the rules.
func StartPrometheus(t testing.TB, rules string, targets []Target) *Prometheus {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: %s, evaluation_interval: %s}\nrule_files: [%q]\nscrape_configs:\n- job_name: taintlet\n  static_configs:\n", scrapeInterval, scrapeInterval, rules)
	for _, target := range targets {
		config += fmt.Sprintf("  - {targets: [%q], labels: {node: %q}}\n", target.Address, target.Node)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	log := filepath.Join(dir, "log")
	p, err := process.Start("Prometheus", process.Command("prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := "http://" + address
	if err := p.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, http.DefaultClient, url+"/-/ready")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return &Prometheus{t, url}
}

// freeAddress is one that was free a moment ago: Prometheus does not tell which port
// it was given.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing went through it
	return listener.Addr().String()
}

// Series is one time series of an answer.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Query asks for the values at a time.
func (p *Prometheus) Query(expr string, at time.Time) ([]Series, error) {
	return p.ask("/api/v1/query", url.Values{"query": {expr}, "time": {seconds(at)}})
}

// Range asks for the values from one time to another, one for each scrape.
func (p *Prometheus) Range(expr string, from, to time.Time) ([]Series, error) {
	return p.ask("/api/v1/query_range", url.Values{
		"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {scrapeInterval.String()},
	})
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// Wait waits until a query has an answer.
func (p *Prometheus) Wait(what, expr string) {
	p.t.Helper()
	cluster.Eventually(p.t, what, func() error {
		found, err := p.Query(expr, time.Now())
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no answer to %s", expr)
		}
		return err
	})
}

// WaitScrapes waits until that many more scrapes of a node are stored.
func (p *Prometheus) WaitScrapes(node string, count int) {
	p.t.Helper()
	scrapes := func() int {
		found, err := p.Query(fmt.Sprintf(`count_over_time(up{node=%q}[1h])`, node), time.Now())
		if err != nil || len(found) != 1 {
			return 0
		}
		return int(found[0].Points[0].Value)
	}
	until := scrapes() + count
	cluster.Eventually(p.t, "scrapes of "+node, func() error {
		if n := scrapes(); n < until {
			return fmt.Errorf("%d scrapes, want %d", n, until)
		}
		return nil
	})
}

// answer is what the API of Prometheus returns.
type answer struct {
	Data struct {
		Result []struct {
			Metric map[string]string
			Value  *sample
			Values []sample
		}
	}
	Warnings []string
}

// sample is a time and a value: [1435781451.781, "1"].
type sample [2]any

func (s sample) point() (Point, error) {
	at, isNumber := s[0].(float64)
	text, isText := s[1].(string)
	if !isNumber || !isText {
		return Point{}, fmt.Errorf("not a sample: %v", s)
	}
	value, err := strconv.ParseFloat(text, 64)
	return Point{time.UnixMilli(int64(at * 1000)), value}, err
}

func (p *Prometheus) ask(path string, query url.Values) ([]Series, error) {
	body, err := process.Get(p.t.Context(), http.DefaultClient, p.url+path+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if len(a.Warnings) > 0 {
		return nil, errors.New(strings.Join(a.Warnings, "; "))
	}
	all := make([]Series, 0, len(a.Data.Result))
	for _, result := range a.Data.Result {
		samples := result.Values
		if result.Value != nil {
			samples = []sample{*result.Value}
		}
		s := Series{Labels: result.Metric}
		for _, each := range samples {
			point, err := each.point()
			if err != nil {
				return nil, err
			}
			s.Points = append(s.Points, point)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Series) int { return strings.Compare(a.name(), b.name()) })
	return all, nil
}

// name tells a series from the others of an answer.
func (s Series) name() string {
	var parts []string
	for label, value := range s.Labels {
		parts = append(parts, label+"="+value)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
