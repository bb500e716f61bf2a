package culprit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// outcome is what became of one hog.
type outcome struct {
	right     []string // who is right to name; none: no single consumer
	isTainted bool
	isRight   bool
	isWrong   bool          // another one was named, be it for a moment
	after     time.Duration // from the taint to the text
	message   string        // the newest of the condition
}

const noSingle = "no pod or program took a third"

// follow takes in what the condition says. tainted is when the taint was seen; zero: not yet.
func (o *outcome) follow(message string, tainted time.Time) {
	if message == "" || o.isRight || o.isWrong {
		return
	}
	o.message = message
	_, said, _ := strings.Cut(message, "; ")
	if len(o.right) == 0 {
		o.isRight = strings.Contains(said, noSingle) || strings.Contains(said, "which have no owner")
	} else {
		o.isRight = slices.ContainsFunc(o.right, func(who string) bool { return names(said, who) })
	}
	o.isWrong = !o.isRight && (strings.Contains(said, " took ") || strings.Contains(said, noSingle))
	if o.isRight && !tainted.IsZero() {
		o.after = time.Since(tainted)
	}
}

// names reports whether a text says of somebody that it took most.
func names(text, who string) bool {
	for _, verb := range []string{" took ", " took up to ", " took at least ", " took about "} {
		if at := strings.Index(text, who+verb); at >= 0 && !strings.Contains(text[:at], " took ") {
			return true
		}
	}
	return false
}

// isDisturbed reports whether somebody else than the hogs was at work: no taint came, or it
// was for a consumer that is none of them.
func (o *outcome) isDisturbed() bool {
	_, said, _ := strings.Cut(o.message, "; ")
	return !o.isTainted || o.isWrong && !strings.Contains(said, noSingle) && !strings.Contains(said, "hog) took") && !strings.Contains(said, "hog took")
}

// isDone reports whether nothing more is waited for.
func (o *outcome) isDone() bool { return o.isRight || o.isWrong }

func (o outcome) String() string {
	return fmt.Sprintf("right %v after %s: %s", o.isRight, o.after.Round(time.Millisecond), o.message)
}

// result is that of all hogs of one course.
type result struct {
	hogs, right int
	disturbed   int // times that somebody else was at work
	isSingle    bool
	after       []time.Duration
}

func (r *result) add(o outcome) {
	r.hogs++
	r.isSingle = len(o.right) > 0
	if o.isRight {
		r.right++
		r.after = append(r.after, o.after)
	}
}

// summary is a table of all courses. isRight: 99 % of those with a culprit name the right one,
// and all others name nobody.
func summary(results map[string]*result) (text string, isRight bool) {
	var table strings.Builder
	table.WriteString("| hogs | runs | right | disturbed, and repeated | text after the taint, median | most |\n|---|---|---|---|---|---|\n")
	single, singleRight, isRight := 0, 0, true
	for _, c := range courses() {
		r := results[c.name]
		if r == nil {
			continue
		}
		slices.Sort(r.after)
		median, most := time.Duration(0), time.Duration(0)
		if n := len(r.after); n > 0 {
			median, most = r.after[n/2], r.after[n-1]
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %s | %s |\n", c.name, r.hogs, r.right, r.disturbed, median.Round(time.Millisecond), most.Round(time.Millisecond))
		if r.isSingle {
			single, singleRight = single+r.hogs, singleRight+r.right
		} else if r.right < r.hogs {
			isRight = false
		}
	}
	fmt.Fprintf(&table, "\nOf %d hogs with a culprit, %d were named right.\n", single, singleRight)
	return table.String(), isRight && 100*singleRight >= 99*single
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"available 1 GiB; pod a (hog) took 3 GiB in 1 s":                                                    true,
		"pod b (hog) took 3 GiB and pod a (hog) took 2 GiB":                                                 false,
		"pod b (hog) took 3 GiB; the largest is pod a (hog) with 3 GiB":                                     false,
		"pod a (hog) took at least 3 GiB":                                                                   true,
		"available 1 GiB; the largest is pod a (hog) with 1 GiB":                                            false,
		"no pod or program took a third of the 3 GiB taken in 1 s, the largest is pod a (hog) with 1.2 GiB": false,
	} {
		if names(text, "pod a (hog)") != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
