package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// benchResults are the pages that make bench writes, one a day.
const benchResults = "measure/bench/results/2[0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].md"

// writeQuotes asks for the newest figures to be written into the pages.
var writeQuotes = flag.Bool("update", false, "write the newest figures of make bench into the pages that quote them")

// The pages say what the newest committed run of make bench measured, and refer to
// it.
func TestPagesQuoteTheNewestBench(t *testing.T) {
	all, err := filepath.Glob(benchResults)
	if err != nil || len(all) == 0 {
		t.Fatalf("no results are committed: %v", err)
	}
	newest := slices.Max(all)
	result := readText(t, newest)
	for page, rows := range map[string][]string{
		"../README.md":            {"from threshold to taint, median"},
		"measure/bench/README.md": {"RSS", "anonymous RSS", "CPU time an hour", "threads", "open descriptors", "binary", "image, compressed", "start to first sample", "start to ready", "memory", "PIDs", "disk"},
	} {
		text := readText(t, page)
		quoting, err := quote(text, result, strings.TrimSuffix(filepath.Base(newest), ".md"), rows)
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if page == "../README.md" {
			if quoting, err = quoteShare(quoting, result); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
		}
		if *writeQuotes {
			if err := os.WriteFile(page, []byte(quoting), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if text != quoting {
			t.Errorf("%s does not quote %s (go test ./test -run %s -update writes it):\n%s", page, newest, t.Name(), changed(text, quoting))
		}
	}
}

// dayOfResults is the name of a day's results in a link.
var dayOfResults = regexp.MustCompile(`(bench/results/|\]\(results/)\d{4}-\d\d-\d\d\.md`)

// quote returns the page with the cells of these rows as the result has them, and
// with links to the result of that day.
func quote(page, result, day string, rows []string) (string, error) {
	for _, name := range rows {
		measured, err := cells(result, name)
		if err != nil {
			return "", fmt.Errorf("the result: %w", err)
		}
		quoted, err := cells(page, name)
		if err != nil {
			return "", err
		}
		page = strings.Replace(page, quoted, firstCell(quoted)+strings.TrimPrefix(measured, firstCell(measured)), 1)
	}
	if !dayOfResults.MatchString(page) {
		return "", fmt.Errorf("no link to the results")
	}
	return dayOfResults.ReplaceAllString(page, "${1}"+day+".md"), nil
}

// share is what README.md says of the whole cost in one sentence.
var share = regexp.MustCompile(`used \d+\.\d+ % of a core and \d+\.\d MiB`)

// quoteShare returns the page with the share of a core and the memory that follow
// from the result's rows.
func quoteShare(page, result string) (string, error) {
	var seconds, memory float64
	for name, figure := range map[string]*float64{"CPU time an hour": &seconds, "RSS": &memory} {
		row, err := cells(result, name)
		if err != nil {
			return "", fmt.Errorf("the result: %w", err)
		}
		if _, err := fmt.Sscanf(strings.TrimPrefix(row, firstCell(row)), "%f", figure); err != nil {
			return "", fmt.Errorf("the result's row of %q: %w", name, err)
		}
	}
	if !share.MatchString(page) {
		return "", fmt.Errorf("no sentence like %q", share)
	}
	return share.ReplaceAllLiteralString(page, fmt.Sprintf("used %.2f %% of a core and %.1f MiB", seconds/36, memory)), nil
}

// README.md has the requests and limits of the chart.
func TestREADMEHasTheChartsResources(t *testing.T) {
	var values struct {
		Resources struct{ Requests, Limits map[string]string }
	}
	if err := yaml.Unmarshal([]byte(readText(t, "../deploy/helm/taintlet/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	r := values.Resources
	want := fmt.Sprintf("Each pod requests %s CPU and %s memory. Its memory limit is %s. It has no CPU limit.", r.Requests["cpu"], r.Requests["memory"], r.Limits["memory"])
	if r.Limits["cpu"] != "" {
		t.Errorf("the chart limits CPU to %s, README.md says that nothing does", r.Limits["cpu"])
	}
	if text := strings.Join(strings.Fields(readText(t, "../README.md")), " "); !strings.Contains(text, want) {
		t.Errorf("README.md lacks %q", want)
	}
}

var linkPattern = regexp.MustCompile(` \(\[[^]]*\]\([^)]*\)\)`)

// cells returns the one row of a text's tables that begins with that name. A link
// in brackets after it is not part of the name.
func cells(text, name string) (found string, err error) {
	for line := range strings.Lines(text) {
		if linkPattern.ReplaceAllString(firstCell(line), "") != "| "+name+" |" {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("two rows of %q", name)
		}
		found = line
	}
	if found == "" {
		return "", fmt.Errorf("no row of %q", name)
	}
	return found, nil
}

// firstCell is the begin of a row up to its second bar.
func firstCell(row string) string {
	inner, isRow := strings.CutPrefix(row, "| ")
	name, _, isWhole := strings.Cut(inner, " |")
	if !isRow || !isWhole {
		return ""
	}
	return "| " + name + " |"
}

// changed returns the lines of a page that are to be others.
func changed(old, now string) string {
	before, after := strings.Split(old, "\n"), strings.Split(now, "\n")
	var lines []string
	for i := range before {
		if before[i] != after[i] {
			lines = append(lines, "has   "+before[i], "not   "+after[i])
		}
	}
	return strings.Join(lines, "\n")
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the newest result says replaces what a page says, and nothing else of it.
func TestQuote(t *testing.T) {
	const page = "# T\n| RSS | 1 MiB | 2 MiB | 0.50 |\n| RSS, most | 9 | 9 | 1 |\n| from threshold ([how](a/b.md)) | 8 s | 1 s |\n[x](test/measure/bench/results/2026-01-02.md)\n"
	const result = "| RSS | 3 MiB | 4 MiB | 0.75 |\n| from threshold | 9 s | 2 s |\n| 1 | a |\n| 1 | b |\n"
	const want = "# T\n| RSS | 3 MiB | 4 MiB | 0.75 |\n| RSS, most | 9 | 9 | 1 |\n| from threshold ([how](a/b.md)) | 9 s | 2 s |\n[x](test/measure/bench/results/2026-11-22.md)\n"
	got, err := quote(page, result, "2026-11-22", []string{"RSS", "from threshold"})
	if err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	for name, bad := range map[string][2]string{
		"CPU": {page, result}, "1": {"| 1 | a |\n" + page, result}, "RSS": {page, "# none\n"}, "from threshold": {"| from threshold | 8 s |\n", result},
	} {
		if _, err := quote(bad[0], bad[1], "2026-11-22", []string{name}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
