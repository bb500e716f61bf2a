package security

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/bed/fleet"
)

// maxGrowth is how much more memory an agent may take while it is lied to or
// flooded, in KiB.
const maxGrowth = 8 << 10

// lie answers on a connection as an agent would not.
type lie func(net.Conn)

// answered is a lie that is an HTTP answer.
func answered(status int, header string, body []byte) lie {
	return func(c net.Conn) {
		fmt.Fprintf(c, "HTTP/1.1 %d Forged\r\nContent-Length: %d\r\n%s\r\n", status, len(body), header)
		c.Write(body) //nolint:errcheck // the other side may have heard enough
	}
}

// said is a lie that looks like an answer of an agent.
func said(version int, well bool) lie {
	a := verdict.Answer{Version: version, Classes: map[verdict.Class]bool{}, Levels: map[probes.Condition]probes.Level{}}
	for _, class := range verdict.Classes() {
		a.Classes[class] = well
	}
	for _, condition := range []probes.Condition{probes.MemoryPressure, probes.DiskPressure, probes.PIDPressure, probes.NetworkUnavailable} {
		a.Levels[condition] = probes.Critical
		if well {
			a.Levels[condition] = probes.OK
		}
	}
	if !well {
		a.Lossy = 100
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return answered(http.StatusOK, "Content-Type: application/json\r\n", text)
}

// lies are all ways to lie.
func lies(elsewhere string) map[string]lie {
	return map[string]lie{
		"all well":      said(verdict.AnswerVersion, true),
		"all broken":    said(verdict.AnswerVersion, false),
		"wrong version": said(99, false),
		"garbage": func(c net.Conn) {
			garbage := make([]byte, 1<<16)
			for i := range garbage {
				garbage[i] = byte(rand.Uint32()) //nolint:gosec // not a secret
			}
			c.Write(garbage) //nolint:errcheck // see above
		},
		"garbage in HTTP": answered(http.StatusOK, "", []byte(strings.Repeat(`{"version":1,"classes":{"`, 1000))),
		"100 MB":          answered(http.StatusOK, "", make([]byte, 100<<20)),
		"endless header": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n")
			for line := range 1 << 20 {
				if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", line, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		},
		"slow drip": func(c net.Conn) {
			for _, b := range []byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("x", 1000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		},
		"silence":   func(c net.Conn) { io.Copy(io.Discard, c) }, //nolint:errcheck // until the other side has enough
		"redirects": answered(http.StatusFound, "Location: http://"+elsewhere+"/peer\r\n", nil),
	}
}

// TestForgedAnswers has one agent, all of whose peers lie: each in another way, or
// in the long form all in the same. Its network is well, so no answer may bring a
// taint, and none may cost memory.
func TestForgedAnswers(t *testing.T) {
	s := fleet.Require(t)
	agents := s.Start(t, fleet.Hosts, fleet.Quick)
	s.WaitKnown(t, fleet.Hosts)
	fleet.WaitSamples(t, agents, 2)
	honest := agents[fleet.Hosts-1]
	visited := countVisits(t, agents[0])
	all := lies(visited.address)
	names := slices.Sorted(maps.Keys(all))
	liars := make([]atomic.Value, fleet.Hosts-1)
	for i, a := range agents[:fleet.Hosts-1] {
		if err := a.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		listenAs(t, a.Host, bed.AgentPort, func(c net.Conn) { liars[i].Load().(lie)(c) }, &liars[i])
	}
	before := honest.Memory(t, "VmRSS")
	tell := func(name string, rounds int, which func(liar int) string) {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			for i := range liars {
				liars[i].Store(all[which(i)])
			}
			fleet.WaitSamples(t, []*fleet.Agent{honest}, rounds)
			s.CheckChanges(t, began, nil)
			if now := honest.Memory(t, "VmRSS"); now > before+maxGrowth {
				t.Errorf("the agent has %d MiB, and had %d MiB", now>>10, before>>10)
			}
		})
	}
	for phase := range 3 { // so that each lie is heard from several
		tell(fmt.Sprintf("mixed, %d", phase+1), 2, func(liar int) string { return names[(liar+3*phase)%len(names)] })
	}
	if isLong() {
		for _, name := range names {
			tell(name, 6, func(int) string { return name })
		}
	}
	t.Logf("memory before %d KiB, after %d KiB", before, honest.Memory(t, "VmRSS"))
	if n := visited.count.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// visits counts connections to a place where nobody has to go.
type visits struct {
	address string
	count   atomic.Int64
}

func countVisits(t *testing.T, a *fleet.Agent) *visits {
	t.Helper()
	const port = 9999
	v := &visits{address: fmt.Sprintf("%s:%d", a.Address, port)}
	listenAs(t, a.Host, port, func(net.Conn) { v.count.Add(1) }, nil)
	return v
}

// listenAs accepts connections on a port of a host for the length of the test,
// from when ready has a value.
func listenAs(t *testing.T, h *bed.Host, port int, serve func(net.Conn), ready *atomic.Value) {
	t.Helper()
	listener, err := h.Listen(fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // nobody is left to be told
				if ready != nil && ready.Load() == nil {
					return
				}
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				if _, err := c.Read(make([]byte, 1024)); err == nil || ready == nil {
					serve(c)
				}
			}()
		}
	}()
}
