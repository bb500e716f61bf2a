package security

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/bed/fleet"
	"github.com/taintlet/taintlet/test/process"
)

// floodEnv makes this program ask an agent for its answer, as often as it can,
// for as long as floodLasts, and print how often it did and what it was answered.
const (
	floodEnv   = "TAINTLET_NETBED_FLOOD"
	floodLasts = 15 * time.Second
)

// floodPort asks the address over many connections at a time. Each connection is used
// until the other side ends it.
func floodPort(address string) int {
	var asked, connected, answered, refused atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(floodLasts)
	request := []byte("GET /peer HTTP/1.1\r\nHost: flood\r\n\r\n")
	for range 64 {
		all.Go(func() {
			for time.Now().Before(end) {
				c, err := net.DialTimeout("tcp", address, time.Second)
				if err != nil {
					continue
				}
				connected.Add(1)
				go countAnswers(c, &answered, &refused) // it ends with the connection
				for time.Now().Before(end) {
					if _, err := c.Write(request); err != nil {
						break
					}
					asked.Add(1)
				}
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		})
	}
	all.Wait()
	fmt.Printf("asked %d connected %d answered %d refused %d\n", asked.Load(), connected.Load(), answered.Load(), refused.Load())
	return 0
}

// countAnswers counts what comes on a connection until that ends.
func countAnswers(c net.Conn, answered, refused *atomic.Int64) {
	reader := bufio.NewReader(c)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return
		}
		switch response.StatusCode {
		case http.StatusOK:
			answered.Add(1)
		case http.StatusTooManyRequests:
			refused.Add(1)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if closed := response.Body.Close(); err != nil || closed != nil {
			return
		}
	}
}

// TestFloodOfThePort floods the port of one agent with far more than 10,000 requests a
// second. It answers within its bounds, refuses the rest, and neither it nor
// anybody else is accused.
func TestFloodOfThePort(t *testing.T) {
	s := fleet.Require(t)
	agents := s.Start(t, fleet.Hosts, fleet.Quick)
	s.WaitKnown(t, fleet.Hosts)
	fleet.WaitSamples(t, agents, 2)
	victim, attacker := agents[fleet.Hosts-1], agents[0]
	memory, began := victim.Memory(t, "VmRSS"), time.Now()
	command := process.Command("/proc/self/exe")
	command.Env = append(os.Environ(), floodEnv+"="+netip.AddrPortFrom(victim.Address, bed.AgentPort).String())
	output := &process.Lines{}
	command.Stdout = output
	p, err := attacker.Start("the flood", command, "")
	if err != nil {
		t.Fatal(err)
	}
	most := memory
	for running := true; running; {
		select {
		case <-p.Ended():
			running = false
		case <-time.After(time.Second):
			most = max(most, victim.Memory(t, "VmRSS"))
		}
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := victim.Process.WaitUntil(ctx, func(context.Context) error { _, err := victim.Get("/readyz"); return err }); err != nil {
		t.Fatal(err)
	}
	fleet.WaitSamples(t, agents, 2)
	s.CheckChanges(t, began, nil)
	asked, refused, got := number(t, output.String(), "asked"), number(t, output.String(), "refused"), number(t, output.String(), "answered")
	t.Logf("%s: %.0f a second; answered %d, refused %d; memory %d KiB, at most %d KiB", strings.TrimSpace(output.String()),
		float64(asked)/floodLasts.Seconds(), got, refused, memory, most)
	if rate := float64(asked) / floodLasts.Seconds(); rate < 10_000 {
		t.Errorf("the flood had %.0f requests a second only", rate)
	}
	if refused == 0 {
		t.Error("no request was refused")
	}
	if bound := int(200*time.Since(began).Seconds()) + 400; got > bound {
		t.Errorf("%d requests were answered, more than %d", got, bound)
	}
	if most > memory+maxGrowth {
		t.Errorf("the agent had %d MiB, and had %d MiB before", most>>10, memory>>10)
	}
}

// number is the one after a word.
func number(t *testing.T, text, word string) int {
	t.Helper()
	_, after, _ := strings.Cut(text, word+" ")
	n, err := strconv.Atoi(strings.Fields(after + " -")[0])
	if err != nil {
		t.Fatalf("no number after %q in %q", word, text)
	}
	return n
}
