package footprint

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

func TestSum(t *testing.T) {
	var p Program
	p.sum([]process.Usage{
		{CPU: 10 * time.Second, RSS: 10 * mebibyte, Anonymous: 4 * mebibyte, Threads: 5, Descriptors: 9},
		{CPU: 20 * time.Second, RSS: 30 * mebibyte, Anonymous: 6 * mebibyte, Threads: 6, Descriptors: 9},
		{CPU: 11 * time.Second, RSS: 12 * mebibyte, Anonymous: 5 * mebibyte, Threads: 6, Descriptors: 10},
	}, 30*time.Minute)
	if want := (Program{RSS: 12, MostRSS: 30, Anonymous: 5, Threads: 6, Descriptors: 9, CPU: 2}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

func TestRows(t *testing.T) {
	f := &Figures{
		Taintlet: Program{RSS: 15, CPU: 2.5, Page: 32000, Ready: 0.05},
		Exporter: Program{RSS: 20, CPU: 5, Page: 64000},
	}
	rows := map[string]Row{}
	for _, r := range f.Rows() {
		rows[r.Name] = r
	}
	for _, want := range []Row{
		{"RSS", "15.0 MiB", "20.0 MiB", "0.75"},
		{"CPU time an hour", "2.50 s", "5.00 s", "0.50"},
		{"page of a scrape", "32 kB", "64 kB", "0.50"},
		{"start to ready", "50 ms", "0 ms", "-"},
	} {
		if rows[want.Name] != want {
			t.Errorf("got %+v, want %+v", rows[want.Name], want)
		}
	}
}
