package bed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// requirement is what TAINTLET_REQUIRE lists for these tests.
	requirement = "netns"
	// insideEnv is set in the process that runs the tests in namespaces of their own.
	insideEnv = "TAINTLET_NETBED_INSIDE"
)

// RunInNamespaces runs the tests in a network and a mount namespace of their own, in which
// the control plane lives too. What needs the network of the host, such as a
// build, goes into before. Without TAINTLET_REQUIRE=netns and root it runs the
// tests here, for them to say why they are skipped.
func RunInNamespaces(before func() error, run func() int) int {
	if os.Getenv(insideEnv) != "" || !cluster.Required(requirement) || CheckNamespaces() != nil {
		return run()
	}
	if err := before(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	command := process.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), insideEnv+"=1")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	p, err := StartInNamespaces("the tests in their namespaces", command)
	if err == nil {
		err = p.Wait()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return p.ExitCode()
}

// StartInNamespaces starts a program in a network and a mount namespace of its own, in
// which it can make a Network. It has a loopback and a default route, which leads nowhere.
func StartInNamespaces(name string, command *exec.Cmd) (*process.Process, error) {
	room, err := newRoom()
	if err != nil {
		return nil, err
	}
	p, err := (*process.Process)(nil), room.Do(func() error {
		return outside("link set lo up", "link add uplink type bridge", "addr add 198.51.100.2/24 dev uplink",
			"link set uplink up", "route add default via 198.51.100.1")
	})
	if err == nil {
		p, err = room.Start(name, command, "")
	}
	if err != nil {
		room.Close()
		return nil, err
	}
	go func() {
		<-p.Ended()
		room.Close()
	}()
	return p, nil
}

// SkipWithoutNamespaces skips a test unless TAINTLET_REQUIRE lists netns. If it does
// and the host lacks something, the test fails.
func SkipWithoutNamespaces(t testing.TB) {
	t.Helper()
	if !cluster.Required(requirement) {
		t.Skip("needs root and network namespaces: set TAINTLET_REQUIRE=controlplane," + requirement)
	}
	if err := CheckNamespaces(); err != nil {
		t.Fatal(err)
	}
}

// CheckNamespaces says all that this host lacks for a Network at once, and how to get it.
func CheckNamespaces() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	var missing []string
	for _, program := range []string{"ip", "bridge", "nft", "dnsmasq", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("this host lacks %s; on Debian: apt-get install -y iproute2 nftables dnsmasq-base util-linux", strings.Join(missing, ", "))
}

// newRoom returns a thread in a network and a mount namespace of its own. /sys
// there shows the interfaces of that network namespace.
func newRoom() (*process.Thread, error) {
	return process.NewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make the mounts of a mount namespace private: %w", err)
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("mount the /sys of a network namespace: %w", err)
		}
		return nil
	})
}
