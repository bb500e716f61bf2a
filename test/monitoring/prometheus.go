// Package monitoring records agents under a scripted incident, hands the record to a real
// Prometheus, asks it all that deploy/monitoring asks, and draws the dashboards.
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

// scrapeInterval is that of many installations.
const scrapeInterval = 15 * time.Second

// Prometheus is a running Prometheus.
type Prometheus struct {
	t   testing.TB
	url string
}

// StartPrometheus starts one for the length of the test on what is stored in a folder. It
// scrapes nothing.
func StartPrometheus(t testing.TB, data string) *Prometheus {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	log := filepath.Join(dir, "log")
	p, err := process.Start("Prometheus", process.Command("prometheus", "--config.file="+file,
		"--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100y", "--web.listen-address="+address,
		// The files have no mark where a series ends, as a scrape makes it.
		"--query.lookback-delta="+(scrapeInterval-time.Second).String()), log)
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
