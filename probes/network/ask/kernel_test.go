package ask

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestAskTheKernel(t *testing.T) {
	t.Parallel()
	k, err := openKernel()
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	for _, own := range []string{"127.0.0.1", "127.9.9.9"} {
		if found, err := k.routeTo(netip.MustParseAddr(own)); found.interfaces != nil || err != nil {
			t.Errorf("%s: %v, %v", own, found, err)
		}
	}
	if name, err := k.name(loopback); name != "lo" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := k.name(1 << 30); err == nil {
		t.Errorf("an interface that is not there is %q", name)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL, unix.EOPNOTSUPP} {
		if err := refusal(errno); !errors.Is(err, errNowhere) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if err := refusal(unix.ENOBUFS); errors.Is(err, errNowhere) {
		t.Errorf("out of memory is no missing route: %v", err)
	}
}

func TestReadCarrier(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1\n": "", "0\n": "", "": "not 0 or 1", "1": "not 0 or 1", "-1\n": "not 0 or 1", "10\n": "not 0 or 1", probetest.Binary: "not 0 or 1",
	} {
		h := probes.Host{Sys: t.TempDir()}
		path := filepath.Join(h.Sys, "class/net/eth0")
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "carrier"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		carrier, err := readCarrier(h, "eth0")
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) || carrier != (text == "1\n") {
			t.Errorf("%q: %t, %v", text, carrier, err)
		}
	}
	if carrier, err := readCarrier(probes.Host{Sys: t.TempDir()}, "eth0"); carrier || err == nil {
		t.Errorf("a missing file: %t, %v", carrier, err)
	}
}

func FuzzParseRoute(f *testing.F) {
	k, err := openKernel()
	if err != nil {
		f.Fatal(err)
	}
	defer k.close()
	for _, to := range []string{"127.0.0.1", "192.0.2.1", "::1", "2001:db8::1"} {
		_, _ = k.routeTo(netip.MustParseAddr(to))
		f.Add(append([]byte{}, k.buffer[:256]...))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if found, err := parseRoute(answer); err != nil && found.interfaces != nil {
			t.Errorf("%v and %v", err, found)
		}
	})
}
