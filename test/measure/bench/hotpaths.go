package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// rawExt ends the name of the file with what the benchmarks print, which
	// benchstat reads.
	rawExt = ".txt"
	// roundBenchmark needs a network namespace of its own: elsewhere it skips.
	roundBenchmark = "^BenchmarkRound$"
)

// hotPaths are the Go benchmarks.
type hotPaths struct {
	// Raw is what they print. It has a file of its own.
	Raw string `json:"-"`
	// Against names the committed result that they are compared with; empty: there
	// is none.
	Against string
	// Compared is what benchstat says.
	Compared string
	// LeftOut says what was not measured, and why.
	LeftOut string
}

// measureHotPaths runs the benchmarks of the agent and its probes.
func (b *bench) measureHotPaths(ctx context.Context) (*hotPaths, error) {
	h := &hotPaths{}
	arguments := append([]string{"test", "-run=^$", "-benchmem", fmt.Sprintf("-count=%d", b.options.count),
		"-benchtime=" + b.options.benchtime.String()}, process.Lean()...) // what is measured is what is shipped
	var err error
	if h.Raw, err = b.goTest(ctx, append(arguments, "-bench=.", "./agent/...", "./probes/...")...); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		h.LeftOut = "BenchmarkRound: it needs root, for a network namespace"
		measure.Say("left out: %s", h.LeftOut)
	} else {
		round, err := b.goTest(ctx, append(arguments, "-bench="+roundBenchmark, "-exec=unshare --net --mount", "./probes/network")...)
		if err != nil {
			return nil, err
		}
		h.Raw += round
	}
	return h, b.compare(ctx, h)
}

// goTest runs benchmarks, shows how far they are, and returns what benchstat reads.
func (b *bench) goTest(ctx context.Context, arguments ...string) (string, error) {
	measure.Say("go %s", strings.Join(arguments, " "))
	out, err := process.Output(ctx, b.module, nil, "go", arguments...)
	return benchmarkLines(out), err
}

// benchmarkLines keeps what benchstat reads: results, and what they are of. Logs
// and packages without benchmarks go.
func benchmarkLines(text string) string {
	var kept strings.Builder
	header := "" // of the package, until it has a result
	for line := range strings.Lines(text) {
		switch word, _, _ := strings.Cut(line, " "); {
		case slices.Contains([]string{"goos:", "goarch:", "cpu:"}, word):
			header += line
		case word == "pkg:":
			header += line
		case strings.HasPrefix(line, "Benchmark") && strings.Contains(line, "ns/op"):
			kept.WriteString(header + line)
			header = ""
		case strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "PASS"):
			header = ""
		}
	}
	return kept.String()
}

// compare asks benchstat what has changed since the last committed result.
func (b *bench) compare(ctx context.Context, h *hotPaths) error {
	folder, err := os.MkdirTemp("", "taintlet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	now := filepath.Join(folder, "now"+rawExt)
	if err := os.WriteFile(now, []byte(h.Raw), 0o600); err != nil {
		return err
	}
	files := []string{"this=" + now}
	name, text, err := b.lastCommitted(ctx)
	if err != nil {
		return err
	}
	if name != "" {
		h.Against = name
		last := filepath.Join(folder, "last"+rawExt)
		if err := os.WriteFile(last, []byte(text), 0o600); err != nil {
			return err
		}
		files = []string{strings.TrimSuffix(path.Base(name), rawExt) + "=" + last, files[0]}
	}
	h.Compared, err = process.Output(ctx, b.module, nil, "go", append([]string{"tool", "-modfile=" + filepath.Join("test", "tools", "go.mod"), "benchstat"}, files...)...)
	return err
}

// lastCommitted returns the newest committed output of the benchmarks, and its
// name. It is read from the commit: this run may be to replace the file.
func (b *bench) lastCommitted(ctx context.Context) (name, text string, err error) {
	out, err := process.Output(ctx, b.module, nil, "git", "ls-tree", "--name-only", "HEAD", resultsFolder+"/")
	if err != nil {
		return "", "", err
	}
	if name = newestRaw(strings.Fields(out)); name == "" {
		return "", "", nil
	}
	text, err = process.Output(ctx, b.module, nil, "git", "show", "HEAD:"+name)
	return name, text, err
}

// newestRaw returns the file of the newest day; empty: there is none.
func newestRaw(names []string) string {
	newest := ""
	for _, name := range names {
		day, isRaw := strings.CutSuffix(path.Base(name), rawExt)
		if _, err := time.Parse(time.DateOnly, day); isRaw && err == nil && name > newest {
			newest = name
		}
	}
	return newest
}
