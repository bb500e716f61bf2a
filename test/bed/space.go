package bed

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/test/process"
)

// Space is a network namespace with a mount namespace, and the thread that lives
// in both. What the thread starts lives there too, and ends with it.
type Space struct {
	*process.Thread

	name string
	tid  int
}

// newSpace makes a namespace whose only interface is the loopback.
func newSpace(name string) (*Space, error) {
	thread, err := newRoom()
	if err != nil {
		return nil, err
	}
	s := &Space{Thread: thread, name: name}
	_ = s.Do(func() error {
		s.tid = unix.Gettid()
		return nil
	})
	return s, s.IP("link set lo up")
}

// Run runs a command in the namespace, with that input. The error shows what it
// said.
func (s *Space) Run(input, program string, args ...string) error {
	_, err := s.Output(input, program, args...)
	return err
}

// Output is Run for a command whose output matters.
func (s *Space) Output(input, program string, args ...string) (string, error) {
	command := exec.Command(program, args...) //nolint:noctx // it takes a moment
	command.Stdin = strings.NewReader(input)
	var out []byte
	err := s.Do(func() (err error) {
		out, err = command.CombinedOutput()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s\n%s", program, strings.Join(args, " "), s.name, err, input, out)
	}
	return string(out), nil
}

// IP gives commands to ip(8).
func (s *Space) IP(commands ...string) error {
	return s.Run(strings.Join(commands, "\n")+"\n", "ip", "-batch", "-")
}

// outside gives commands to ip(8) in the namespace of the tests themselves.
func outside(commands ...string) error {
	command := exec.Command("ip", "-batch", "-") //nolint:noctx // it takes a moment
	command.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w\n%s\n%s", err, strings.Join(commands, "\n"), out)
	}
	return nil
}

// NFT gives a text to nft(8).
func (s *Space) NFT(text string) error { return s.Run(text, "nft", "-f", "-") }

// Sysctl sets a value of the network namespace, such as net/ipv4/ip_forward.
func (s *Space) Sysctl(name, value string) error {
	return s.Do(func() error {
		return os.WriteFile("/proc/sys/"+name, []byte(value), 0o600)
	})
}

// bind makes a file stand in for another one in the mount namespace.
func (s *Space) bind(file, over string) error {
	return s.Do(func() error {
		if err := unix.Mount(file, over, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("put %s over %s: %w", file, over, err)
		}
		return nil
	})
}
