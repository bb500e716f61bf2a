package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	newest           map[string]float64
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
	var values map[string]float64
	if err == nil {
		values, err = series(page)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed++
		return err
	}
	s.answered++
	s.newest = values
	return nil
}

// series returns the value of each time series of a page of metrics.
func series(page []byte) (map[string]float64, error) {
	all := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndexByte(line, ' ')
		if end < 0 {
			return nil, fmt.Errorf("no line of metrics: %q", line)
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("no line of metrics: %q", line)
		}
		all[line[:end]] = value
	}
	return all, nil
}

// says is the newest value of a time series; 0 when there is none.
func (s *scraper) says(name string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest[name]
}

// sum is the sum of the newest values of all time series of a name that have all of
// these labels, such as result="ok".
func (s *scraper) sum(name string, labels ...string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var total float64
	for series, value := range s.newest {
		if of, set, _ := strings.Cut(series, "{"); of == name && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(set, l) }) {
			total += value
		}
	}
	return total
}

// counts are how many scrapes were answered, and how many were not.
func (s *scraper) counts() (answered, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered, s.failed
}

// complete adds what the newest metrics say.
func (s *scraper) complete(one sample) sample {
	one.Goroutines, one.Heap = int(s.says("go_goroutines")), uint64(s.says("go_memstats_heap_inuse_bytes"))
	return one
}
