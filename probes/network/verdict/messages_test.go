package verdict

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

var update = flag.Bool("update", false, "write what the probe says into testdata/messages.golden")

// Every row of the verdict's table says what it says in the words of the checks, and
// so does every other way to come to a row.
func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	var said []probes.Observation
	for _, row := range rows {
		s := played(1)
		said = append(said, examples()[row.reason](s))
	}
	after := func(rounds int, changes ...change) probes.Observation {
		s := played(1)
		return s.play(rounds, changes...)
	}
	alone := newScript()
	alone.size = 0
	said = append(said,
		after(1, told(Route, "no route")), after(1, told(Route, "no route nor to the API server")), after(1, told(Route, "garbled carrier")), after(1, told(Route, "unreadable carrier")), after(1, told(Route, "kernel not asked")),
		after(13, onlyPod(12, 4)), after(13, onlyPod(12, 6)), after(1, onlyPod(12, 4)),
		after(1, told(Pods, "DNS pods never answered")), alone.play(1, closedTo(12)), after(63, closedTo(4)),
		after(1, told(Conntrack, "packets dropped")), after(3, told(Conntrack, "connection table full")), after(1, reachOnly(6)), after(1, hanging(12)), after(3, hanging(12)),
		after(7, told(DNS, "no nameserver answers"), class(API, Failed, "")), after(21, told(Local, "unhealthy daemon"), late),
		alone.play(1), alone.play(7, told(DNS, "no nameserver answers")),
		after(7, told(DNS, "nameservers fail")), after(1, told(DNS, "nameservers failed since the start")),
		after(12, retransmits(6), answers(func(_ int, a *Answer) { a.Lossy = 30 })),
		after(5, fullLost(9), counting(2, 8)), after(1, fullLost(9), counting(12, 0)),
	)
	back := newScript()
	back.play(2, told(DNS, "no nameserver answers"))
	said = append(said, back.play(1, class(DNS, Well, "10.96.0.10 answered")))
	probetest.Golden(t, *update, said...)
}

// told makes a class have a result of its check, by the name in results.golden.
func told(c Class, name string) change {
	return func(r *Round) { r.Results[c] = recorded()[name] }
}

// recorded are results of the checks, which their own test writes.
var recorded = sync.OnceValue(func() map[string]Result {
	text, err := os.ReadFile("../ask/testdata/results.golden")
	if err != nil {
		panic(err)
	}
	all := map[string]Result{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 3)
		result := Result{Detail: fields[2], Never: strings.HasPrefix(fields[1], "never"), IsSure: strings.HasSuffix(fields[1], "surely")}
		if strings.HasPrefix(fields[1], "failed") {
			result.Outcome = Failed
		}
		all[fields[0]] = result
	}
	return all
})
