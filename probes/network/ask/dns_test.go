package ask

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

func TestParseResolvConf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, servers, ask string }{
		{"of a pod", "search taintlet.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n", "10.96.0.10:53", "kubernetes.default.svc.cluster.local."},
		{"a domain with a dot", "search svc.example.org.\nnameserver fd00::a\n", "[fd00::a]:53", "kubernetes.default.svc.example.org."},
		{"of a host", "# comment\n; another\nnameserver 127.0.0.53\nsearch example.org\n", "127.0.0.53:53", "localhost."},
		{"four, of which a resolver asks three", "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n", "1.1.1.1:53 1.1.1.2:53 1.1.1.3:53", "localhost."},
		{"a zone", "nameserver fe80::1%eth0\n", "[fe80::1%eth0]:53", "localhost."},
		{"garbled", "nameserver\nnameserver ten\nnameserver 10.0.0.300\n\x00\n", "", "localhost."},
		{"the last search counts", "search svc.a\nsearch b\n", "", "localhost."},
	} {
		conf := parseResolvConf(test.text)
		var servers []string
		for _, s := range conf.servers {
			servers = append(servers, s.String())
		}
		if got := strings.Join(servers, " "); got != test.servers || conf.name != test.ask {
			t.Errorf("%s: %q asks for %q, want %q and %q", test.name, got, conf.name, test.servers, test.ask)
		}
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	got, err := question(0x1234, "kubernetes.default.")
	want := "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x00\x00\x01\x00\x01"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, name := range []string{"", "a..b.", strings.Repeat("a", 64) + "."} {
		if got, err := question(1, name); err == nil {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// nameserver answers on loopback what answer makes of each question; nil: not.
func nameserver(t *testing.T, answer func(question []byte) []byte) netip.AddrPort {
	t.Helper()
	return serveDNS(t, "127.0.0.1:0", answer)
}

func serveDNS(t testing.TB, address string, answer func(question []byte) []byte) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 512)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			if a := answer(buffer[:n]); a != nil {
				_, _ = c.WriteToUDPAddrPort(a, from)
			}
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// reply3 is an answer with RCODE 3: there is no such name.
func reply3(question []byte) []byte { return replyWith(3)(question) }

// replyWith answers with that RCODE, and with recursion available (RFC 1035, 4.1.1).
func replyWith(code rcode) func(question []byte) []byte {
	return func(question []byte) []byte {
		a := append([]byte{}, question...)
		a[2], a[3] = a[2]|0x80, 0x80|byte(code)
		return a
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, test := range []struct {
		name   string
		answer func([]byte) []byte
		ok     bool
	}{
		{"no such name", reply3, true},
		{"silence", func([]byte) []byte { return nil }, false},
		{"the second try is answered", func(q []byte) []byte {
			if asked++; asked < 2 {
				return nil
			}
			return reply3(q)
		}, true},
		{"another ID", func(q []byte) []byte { a := reply3(q); a[0]++; return a }, false},
		{"a question", func(q []byte) []byte { return q }, false},
		{"cut off", func(q []byte) []byte { return reply3(q)[:11] }, false},
	} {
		server := nameserver(t, test.answer)
		if err := query(t.Context(), server, "localhost.", 50*time.Millisecond); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	server := nameserver(t, reply3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := query(ctx, server, "localhost.", time.Second); err == nil {
		t.Error("answered after the end of its context")
	}
}

// An error is told by its name, and a nameserver that has one is asked once.
func TestQueryIsAnsweredWithAnError(t *testing.T) {
	t.Parallel()
	for code, want := range map[rcode]string{0: "", 1: "FORMERR", 2: "SERVFAIL", 3: "", 4: "NOTIMP", 5: "REFUSED", 9: "RCODE 9"} {
		var asked atomic.Int32
		server := nameserver(t, func(question []byte) []byte { asked.Add(1); return replyWith(code)(question) })
		err := query(t.Context(), server, "localhost.", time.Minute)
		if got := fmt.Sprint(err); (err != nil || want != "") && got != want || asked.Load() != 1 {
			t.Errorf("RCODE %d: %v after %d questions, want %q", code, err, asked.Load(), want)
		}
	}
}

func TestQueryIsRefused(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	err := query(t.Context(), netip.MustParseAddrPort("127.0.0.1:9"), "localhost.", time.Minute)
	if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(begin) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

func TestDNSJudges(t *testing.T) {
	t.Parallel()
	a, b := netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("10.0.0.2:53")
	late := os.ErrDeadlineExceeded
	d := &DNS{conf: resolvConf{servers: []netip.AddrPort{a, b}}, seen: reached{}}
	for _, step := range []struct {
		name   string
		errs   []error
		want   verdict.Outcome
		detail string
	}{
		{"none at first", []error{late, late}, verdict.NotKnown, "no nameserver ever resolved names since the start: 10.0.0.1: no answer in time"},
		{"the first", []error{nil, late}, verdict.Well, "nameserver 10.0.0.1 answers"},
		{"none", []error{late, late}, verdict.Failed, "no nameserver resolves names: 10.0.0.1: no answer in time"},
		{"the second alone", []error{syscall.ECONNREFUSED, nil}, verdict.Well, "nameserver 10.0.0.2 answers; 10.0.0.1: connection refused"},
		{"none again", []error{late, late}, verdict.Failed, "10.0.0.1: no answer in time; 10.0.0.2: no answer in time"},
		{"an error beside an answer", []error{rcode(2), nil}, verdict.Well, "nameserver 10.0.0.2 answers; 10.0.0.1: SERVFAIL"},
		{"errors", []error{rcode(2), rcode(5)}, verdict.Failed, "no nameserver resolves names: 10.0.0.1: SERVFAIL; 10.0.0.2: REFUSED"},
		{"an error and silence", []error{late, rcode(5)}, verdict.Failed, "no nameserver resolves names: 10.0.0.1: no answer in time; 10.0.0.2: REFUSED"},
	} {
		got := d.evaluate(step.errs)
		if got.Outcome != step.want || !strings.Contains(got.Detail, step.detail) {
			t.Errorf("%s: %+v, want %v with %q", step.name, got, step.want, step.detail)
		}
	}
}

// Errors since the start may be meant so, or the fault is older than the agent.
func TestDNSThatAlwaysFailed(t *testing.T) {
	t.Parallel()
	server := netip.MustParseAddrPort("10.0.0.1:53")
	d := &DNS{conf: resolvConf{servers: []netip.AddrPort{server}}, seen: reached{}}
	for range 2 {
		if got := d.evaluate([]error{rcode(2)}); got.Outcome != verdict.NotKnown || !got.Never {
			t.Errorf("%+v", got)
		}
	}
}

// A pod's resolv.conf that cannot be read, or names no nameserver, says nothing of the host.
func TestNoNameserver(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, detail := range map[string]string{empty: "names no nameserver", empty + ".gone": "no such file"} {
		if got := NewDNS(path).Ask(t.Context(), nil, patience); got.Outcome != verdict.NotKnown || got.Never || !strings.Contains(got.Detail, detail) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func FuzzIsAnswer(f *testing.F) {
	question, err := question(7, "localhost.")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reply3(question))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, packet []byte) {
		if isAnswer(packet, question) {
			_ = errorIn(packet)
		}
	})
}
