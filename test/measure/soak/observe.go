package soak

import (
	"context"
	"net/http"
	"sync"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/process"
)

// observe reads what a process holds. What its metrics say is added by the scraper.
func observe(pid int) (sample, error) {
	u, err := process.UsageOf(pid)
	return sample{RSS: u.RSS, Anon: u.Anonymous, Threads: u.Threads, Descriptors: u.Descriptors, CPU: u.CPU.Seconds()}, err
}

// scraper asks an agent for its metrics as Prometheus does, on one connection.
type scraper struct {
	url    string
	client *http.Client

	mu               sync.Mutex
	answered, failed int
	page             string // the newest
}

func newScraper(address string) *scraper {
	return &scraper{url: "http://" + address + "/metrics", client: &http.Client{}}
}

// scrape asks once.
func (s *scraper) scrape(ctx context.Context) error {
	page, err := process.Get(ctx, s.client, s.url)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed++
		return err
	}
	s.answered, s.page = s.answered+1, string(page)
	return nil
}

// newest is the newest page.
func (s *scraper) newest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page
}

// sum is the sum of the newest values of all time series of a name that have all of
// these labels, such as result="ok".
func (s *scraper) sum(name string, labels ...string) float64 {
	page := s.newest()
	return bed.Metric(page, name) + bed.Sum(page, name, labels...)
}

// counts are how many scrapes were answered, and how many were not.
func (s *scraper) counts() (answered, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered, s.failed
}

// complete adds what the newest metrics say.
func (s *scraper) complete(one sample) sample {
	one.Goroutines, one.Heap = int(s.sum("go_goroutines")), uint64(s.sum("go_memstats_heap_inuse_bytes"))
	return one
}
