package test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// writeGenerated asks for the parts of pages that are generated from committed files to be written.
var writeGenerated = flag.Bool("update", false, "write what is generated from committed files into the pages")

// The pages have the figures of the newest committed results, as figures.txt says.
func TestPagesHaveTheFiguresOfTheNewestResults(t *testing.T) {
	quotes, err := readQuotes(readText(t, "figures.txt"))
	if err != nil || len(quotes) == 0 {
		t.Fatalf("%d lines: %v", len(quotes), err)
	}
	for _, q := range quotes {
		results, err := filepath.Glob(filepath.Join("..", q.results))
		if err != nil || len(results) == 0 {
			t.Errorf("%s quotes %s, which is not committed (%v)", q.page, q.results, err)
			continue
		}
		path, newest := filepath.Join("..", q.page), slices.Max(results)
		page := readText(t, path)
		was, now, err := q.compare(page, readText(t, newest), strings.TrimSuffix(filepath.Base(newest), filepath.Ext(newest)))
		switch {
		case err != nil:
			t.Errorf("%s from %s: %v; change the page, or its line in test/figures.txt", q.page, newest, err)
		case was == now:
		case *writeGenerated:
			if err := os.WriteFile(path, []byte(strings.Replace(page, was, now, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is stale: it has\n%s\nand by the newest result, %s, this is\n%s\n(go test ./test -run %s -update writes it)", q.page, was, newest, now, t.Name())
		}
	}
}

// quote is a line of figures.txt.
type quote struct {
	page, results    string
	inPage, inResult fragment
}

// fragment is a text with figures, which stands once in a page or a result.
type fragment struct {
	text     string
	pattern  *regexp.Regexp
	divisors []float64 // of each figure
}

// readQuotes reads figures.txt.
func readQuotes(text string) (quotes []quote, err error) {
	var page, results string
	for line := range strings.Lines(text) {
		line, isIndented := strings.TrimRight(line, "\n"), strings.HasPrefix(line, "  ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !isIndented:
			var found bool
			if page, results, found = strings.Cut(line, " from "); !found {
				return nil, fmt.Errorf("%q is not PAGE from RESULT", line)
			}
		default:
			inPage, inResult, found := strings.Cut(strings.TrimSpace(line), " <- ")
			q := quote{page: page, results: results, inPage: newFragment(inPage), inResult: newFragment(cmp.Or(inResult, inPage))}
			if a, b := len(q.inPage.divisors), len(q.inResult.divisors); a != b || found && a == 0 || page == "" {
				return nil, fmt.Errorf("%q: %d figures in the page, %d in the result", line, a, b)
			}
			quotes = append(quotes, q)
		}
	}
	return quotes, nil
}

const figure = `(\d+(?:,\d{3})*(?:\.\d+)?)`

var (
	placeholder = regexp.MustCompile(`\bN(?:/(\d+))?\b|\bDAY\b`)
	blanks      = regexp.MustCompile(`\s+`)
)

// newFragment makes the pattern of a text: N is a figure, DAY a name, and each blank can be
// the end of a line.
func newFragment(text string) fragment {
	f := fragment{text: text}
	var pattern strings.Builder
	literal := func(part string) { pattern.WriteString(blanks.ReplaceAllString(regexp.QuoteMeta(part), `\s+`)) }
	last := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		literal(text[last:at[0]])
		last = at[1]
		if text[at[0]:at[1]] == "DAY" {
			pattern.WriteString(`(?P<day>[\w-]+)`)
			continue
		}
		pattern.WriteString(figure)
		divisor := 1.0
		if at[2] >= 0 {
			divisor, _ = strconv.ParseFloat(text[at[2]:at[3]], 64) // digits
		}
		f.divisors = append(f.divisors, divisor)
	}
	literal(text[last:])
	if last == len(text) && last > 0 { // whole numbers only
		pattern.WriteString(`\b`)
	}
	f.pattern = regexp.MustCompile(`(?:^|[^\d.,])(` + pattern.String() + `)`)
	return f
}

// find returns where the whole text and each placeholder stand: begin and end in turn.
func (f fragment) find(text string) ([]int, error) {
	all := f.pattern.FindAllStringSubmatchIndex(text, -1)
	if len(all) != 1 {
		return nil, fmt.Errorf("%q is there %d times, want once", f.text, len(all))
	}
	return all[0][2:], nil
}

// compare returns the fragment as it is in the page, and as it is to be.
func (q quote) compare(page, result, day string) (was, now string, err error) {
	at, err := q.inPage.find(page)
	if err != nil {
		return "", "", fmt.Errorf("in the page %w", err)
	}
	var measured []string
	if len(q.inResult.divisors) > 0 {
		found, err := q.inResult.find(result)
		if err != nil {
			return "", "", fmt.Errorf("in the result %w", err)
		}
		for i := 2; i < len(found); i += 2 {
			measured = append(measured, result[found[i]:found[i+1]])
		}
	}
	last, names := at[0], q.inPage.pattern.SubexpNames()
	for i, number := 2, 0; i < len(at); i += 2 {
		now += page[last:at[i]]
		last = at[i+1]
		if names[i/2+1] == "day" {
			now += day
			continue
		}
		said, err := asPrecise(measured[number], q.inResult.divisors[number], page[at[i]:last])
		if err != nil {
			return "", "", err
		}
		now += said
		number++
	}
	return page[at[0]:at[1]], now + page[last:at[1]], nil
}

// asPrecise returns a measured figure with as many decimals as it has in the page.
func asPrecise(measured string, divisor float64, inPage string) (string, error) {
	value, err := strconv.ParseFloat(strings.ReplaceAll(measured, ",", ""), 64)
	if err != nil {
		return "", err
	}
	_, decimals, _ := strings.Cut(inPage, ".")
	text := strconv.FormatFloat(value/divisor, 'f', len(decimals), 64)
	if whole, _, _ := strings.Cut(text, "."); strings.Contains(inPage, ",") {
		for i := len(whole) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	return text, nil
}

// A stale figure is replaced, with the page's decimals, and nothing else. What is not there
// once is an error that names it.
func TestFiguresAreCompared(t *testing.T) {
	const page = "# T\n[x](results/2026-01-02.md) used 0.11 %\nof a core, 20.2 MiB, 605,171 samples.\n| RSS | 1 MiB | 2 |\n| RSS, most | 1 MiB | 2 |\n"
	const result = "| RSS | 3.04 MiB | 2 |\n| CPU | 7.2 s |\n| samples | 1234567 |\n| twice | 1 |\n| twice | 1 |\n"
	for line, want := range map[string]string{
		"results/DAY.md":                "results/2026-11-22.md",
		"used N % of a core <- N/36 s":  "used 0.20 %\nof a core",
		", N MiB, <- | RSS | N MiB":     ", 3.0 MiB,",
		"N samples <- | samples | N |":  "1,234,567 samples",
		"| RSS | N MiB | N |":           "| RSS | 3 MiB | 2 |",
		"| RSS | 1 MiB":                 "",
		"used N % <- | none | N |":      `in the result "| none | N |" is there 0 times`,
		"used N % <- | twice | N |":     `in the result "| twice | N |" is there 2 times`,
		"N threads <- | RSS | N MiB":    `in the page "N threads" is there 0 times`,
		"1 MiB | 2 | <- | none":         `in the page`,
		"used N % <- | RSS | N MiB | N": "2 in the result",
	} {
		quotes, err := readQuotes("page from result\n  " + line + "\n")
		var now string
		if err == nil {
			_, now, err = quotes[0].compare(page, result, "2026-11-22")
		}
		if err != nil {
			now = err.Error()
		}
		if !strings.Contains(now, want) {
			t.Errorf("%s: %q, want %q", line, now, want)
		}
	}
}
