package main

import "testing"

func TestBenchmarkLines(t *testing.T) {
	const text = `?   	github.com/taintlet/taintlet/agent/assembly	[no test files]
goos: linux
goarch: amd64
pkg: github.com/taintlet/taintlet/agent
cpu: AMD EPYC
2026/11/22 12:00:00 a log
BenchmarkStep
BenchmarkScrape-2   	     100	    499309 ns/op	   59449 B/op	     594 allocs/op
BenchmarkScrape-2   	     100	    499310 ns/op	   59449 B/op	     594 allocs/op
PASS
ok  	github.com/taintlet/taintlet/agent	0.169s
goos: linux
goarch: amd64
pkg: github.com/taintlet/taintlet/agent/config
cpu: AMD EPYC
--- SKIP: BenchmarkRound
    bench_test.go:46: needs a network namespace of its own
PASS
ok  	github.com/taintlet/taintlet/agent/config	0.169s
`
	const want = `goos: linux
goarch: amd64
pkg: github.com/taintlet/taintlet/agent
cpu: AMD EPYC
BenchmarkScrape-2   	     100	    499309 ns/op	   59449 B/op	     594 allocs/op
BenchmarkScrape-2   	     100	    499310 ns/op	   59449 B/op	     594 allocs/op
`
	if got := benchmarkLines(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNewestRaw(t *testing.T) {
	names := []string{"test/measure/bench/results/2026-11-21.txt", "test/measure/bench/results/2026-12-01.txt", "test/measure/bench/results/2026-12-02.md", "test/measure/bench/results/notes.txt"}
	if got := newestRaw(names); got != names[1] {
		t.Errorf("got %q", got)
	}
	if got := newestRaw(names[2:]); got != "" {
		t.Errorf("got %q where there is none", got)
	}
}
