package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// keepEnv lists the troubles of a seed that befall the agent, such as "0.0 2.1": the step and
// its trouble. Empty: all.
const keepEnv = "TAINTLET_FAULT_KEEP"

// place is a trouble of a plan.
type place struct{ step, trouble int }

func (p place) String() string { return fmt.Sprintf("%d.%d", p.step, p.trouble) }

func textOf(places []place) string {
	if len(places) == 0 {
		return "none"
	}
	var words []string
	for _, p := range places {
		words = append(words, p.String())
	}
	return strings.Join(words, " ")
}

// placesOf are those of all troubles of a plan.
func placesOf(steps []step) (all []place) {
	for i, s := range steps {
		for k := range s.troubles {
			all = append(all, place{i, k})
		}
	}
	return all
}

// keep leaves in a plan the troubles that the text lists.
func keep(steps []step, text string) []step {
	if text == "" {
		return steps
	}
	kept := strings.Fields(text)
	for i := range steps {
		var less step
		for k, one := range steps[i].troubles {
			if slices.Contains(kept, place{i, k}.String()) {
				less.troubles, less.choices = append(less.troubles, one), append(less.choices, steps[i].choices[k])
			}
		}
		steps[i].troubles, steps[i].choices = less.troubles, less.choices
	}
	return steps
}

// fewest leaves out the troubles without which the seed still fails.
func fewest(all []place, fails func([]place) bool) []place {
	for i := 0; i < len(all); {
		if fewer := slices.Delete(slices.Clone(all), i, i+1); fails(fewer) {
			all = fewer
		} else {
			i++
		}
	}
	return all
}

// shortenFor is how long the troubles of a failing seed are tried.
const shortenFor = 5 * time.Minute

// shorten plays a failing plan again and again, with fewer troubles, and tells the fewest with
// which it fails. Each try has a control plane of its own, and is made twice.
func (p plan) shorten(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), shortenFor)
	defer cancel()
	tries := 0
	fails := func(kept []place) bool {
		for range 2 {
			tries++
			env := []string{seedsEnv + "=1", firstEnv + "=" + strconv.FormatUint(p.seed, 10), aimEnv + "=" + p.aim.String(), keepEnv + "=" + textOf(kept), programEnv + "=" + program.Path(t)}
			_, err := process.Output(ctx, "", env, os.Args[0], "-test.run=^TestSeeds$", "-test.timeout=10m")
			var exit *exec.ExitError
			if errors.As(err, &exit) && ctx.Err() == nil {
				return true
			}
		}
		return false
	}
	steps := p.steps()
	all := placesOf(steps)
	if !fails(all) {
		t.Logf("%s did not fail again in %d tries: the order of its requests matters", p, tries)
		return
	}
	least := fewest(all, fails)
	var text strings.Builder
	for _, at := range least {
		s := steps[at.step]
		fmt.Fprintf(&text, "  in step %d, while %s is %s for %s: %s\n", at.step+1, s.condition, s.to, s.length, s.troubles[at.trouble].name)
	}
	t.Logf("it fails with these of its %d troubles (%d tries): %s=%q %s\n%s", len(all), tries, keepEnv, textOf(least), p, &text)
}

// The fewest troubles are those without which nothing fails.
func TestFewest(t *testing.T) {
	all := []place{{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}}
	least := fewest(all, func(kept []place) bool {
		return slices.Contains(kept, place{0, 1}) && slices.Contains(kept, place{2, 0})
	})
	if text := textOf(least); text != "0.1 2.0" {
		t.Errorf("the fewest are %s", text)
	}
	third := plan{seed: 3}
	left := placesOf(keep(third.steps(), textOf(placesOf(third.steps())[:2])))
	if len(left) != 2 {
		t.Errorf("two troubles were kept, and there are %v", left)
	}
	if left := placesOf(keep(third.steps(), textOf(nil))); len(left) != 0 {
		t.Errorf("no trouble was kept, and there are %v", left)
	}
}
