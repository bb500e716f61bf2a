package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// bands reads the whole picture and counts its conditions.
func bands(t *testing.T, svg []byte) int {
	t.Helper()
	found := 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "g" {
			found++
		}
	}
}

func TestPlotHasABandForEachCondition(t *testing.T) {
	for name, conditions := range map[string][]probes.Condition{
		"one": {probes.DiskPressure}, "four": config.Default().Names(),
	} {
		r := made(t, config.Default(), random, 24*time.Hour, conditions...)
		r.Input = `a <b> & "c"]]>` // a file may be called that
		if got := bands(t, plot(r)); got != len(conditions) {
			t.Errorf("%s: %d bands, want %d", name, got, len(conditions))
		}
	}
}

// TestPlotStaysSmall draws a million changes of everything.
func TestPlotStaysSmall(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	const year = 366 * 24 * time.Hour
	noise := func(values int) track {
		var of track
		for at := time.Duration(0); at < year; at += time.Duration(dice.ExpFloat64() * float64(30*time.Second)) {
			of.add(at, dice.IntN(values))
		}
		return of
	}
	c := &course{condition: probes.MemoryPressure, input: noise(4), taintlet: noise(2), kubelet: noise(2)}
	r := &report{Input: "noise", Duration: seconds(year), courses: []*course{c}, Conditions: make([]figures, 2)}
	if size := len(plot(r)); size > 100_000 {
		t.Errorf("%d bytes for %d changes", size, len(c.taintlet))
	}
	// Nothing happens: each lane is one shape.
	c.input, c.taintlet, c.kubelet = track{{0, 3}}, track{{0, 1}}, track{{0, 1}}
	if size := len(plot(r)); size > 6_000 {
		t.Errorf("%d bytes for no change at all", size)
	}
	// The worst case: every pixel differs from its neighbours.
	stripes := func(values int) track {
		var of track
		for i := range plotWidth {
			of.add(time.Duration(i)*(year/plotWidth), i%values)
		}
		return of
	}
	c.input, c.taintlet, c.kubelet = stripes(4), stripes(2), stripes(2)
	if size := len(plot(r)); size > 100_000 {
		t.Errorf("%d bytes for stripes", size)
	}
}

// TestShade: a burst of a second is seen in the picture of a year, and so is a
// gap.
func TestShade(t *testing.T) {
	const year = 365 * 24 * time.Hour
	perPixel := year / plotWidth
	begin := 100*perPixel + perPixel/2
	if got := shade([]interval{{begin, begin + time.Second}}, year); got[100] != 1 || got[99] != 0 || got[101] != 0 {
		t.Errorf("a burst: %v", got[99:102])
	}
	half := []interval{{0, 100*perPixel + perPixel/2}, {101 * perPixel, year}}
	if got := shade(half, year); got[99] != 4 || got[100] != 2 || got[101] != 4 || got[plotWidth-1] != 4 {
		t.Errorf("a gap: %v ... %v", got[99:102], got[plotWidth-1])
	}
}

func TestTicksAreFew(t *testing.T) {
	for _, end := range []time.Duration{time.Second, time.Minute, 50 * time.Minute, time.Hour, 26 * time.Hour, 7 * 24 * time.Hour, maxDuration} {
		if n := int(end/tick(end)) + 1; n > 13 {
			t.Errorf("%s: %d labels", end, n)
		}
	}
	for want, at := range map[string]time.Duration{"0": 0, "30m": 30 * time.Minute, "24h": 24 * time.Hour, "1d 12h": 36 * time.Hour, "2d": 48 * time.Hour} {
		if got := tickLabel(at); got != want {
			t.Errorf("%s is labelled %q, want %q", at, got, want)
		}
	}
}

// The picture of the documentation is what the simulator draws, and the text
// beside it has its figures. After a change of the decider: make docs-images.
func TestDocumentationsPicture(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(makefile), "FLAPPING := ")
	line, _, _ = strings.Cut(line, "\n")
	file := filepath.Join(t.TempDir(), "flapping.svg")
	var stdout, stderr bytes.Buffer
	if code := run(append(strings.Fields(line), "--plot", file), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	drawn, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../../docs/images/flapping.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn, committed) {
		t.Error("docs/images/flapping.svg is not what the simulator draws now")
	}
	page, err := os.ReadFile("../../docs/how-it-decides.md")
	if err != nil {
		t.Fatal(err)
	}
	for rule, sentence := range map[string]string{
		ruleTaintlet: "With taintlet it changes %s times", ruleKubelet: "the taint changes %s times",
	} {
		changes := regexp.MustCompile(`All: ` + rule + ` (\d+) changes`).FindSubmatch(stdout.Bytes())
		if changes == nil || !strings.Contains(string(page), fmt.Sprintf(sentence, changes[1])) {
			t.Errorf("the page does not say that by the rule of %s there are %s changes", rule, changes)
		}
	}
}
