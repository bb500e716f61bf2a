package hosts

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/taintlet/taintlet/test/process"
)

// memory of a machine, in mebibytes.
const memory = 2560

// Machine is a running virtual machine. Its host is 10.0.2.2, the gateway, whose ports are
// those of 127.0.0.1 here.
type Machine struct {
	qemu    *process.Process
	dir     string
	monitor *monitor

	shell io.Writer
	mu    sync.Mutex // of what follows, and of writes to the shell
	next  int
	runs  map[int]chan<- answer
	boots chan struct{} // a value for each boot
}

// answer is that of a command that ran in the machine.
type answer struct {
	code   int
	output string
}

// startMachine starts a machine with a copy of the image, and with the files of cargo at
// /cargo. All that it writes is below dir.
func startMachine(ctx context.Context, dir string, release Release, from image, cargo string) (*Machine, error) {
	m := &Machine{dir: dir, runs: map[int]chan<- answer{}, boots: make(chan struct{}, 10)}
	for _, command := range [][]string{
		{"qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", from.disk, m.file("root")},
		{"mke2fs", "-q", "-t", "ext4", "-d", cargo, m.file("cargo"), "1G"},
		{"qemu-img", "create", "-q", "-f", "raw", m.file("state"), "4G"},
	} {
		if _, err := process.Output(ctx, dir, nil, command[0], command[1:]...); err != nil {
			return nil, err
		}
	}
	var err error
	m.qemu, err = process.Start("qemu", process.Command("nice", append([]string{"qemu-system-x86_64"}, m.arguments(release, from)...)...), m.file("qemu.log"))
	if err != nil {
		return nil, err
	}
	if err := m.connect(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func (m *Machine) arguments(release Release, from image) []string {
	return []string{
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", strconv.Itoa(memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "file:" + m.file("console"),
		"-kernel", from.kernel, "-initrd", from.initrd,
		"-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet " + release.Arguments,
		"-drive", "if=virtio,cache=unsafe,format=qcow2,file=" + m.file("root"),
		"-drive", "if=virtio,cache=unsafe,format=raw,readonly=on,file=" + m.file("cargo"),
		"-drive", "if=virtio,cache=unsafe,format=raw,file=" + m.file("state"),
		"-netdev", "user,id=net", "-device", "virtio-net-pci,id=cable,netdev=net,romfile=",
		"-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
		"-chardev", "socket,id=shell,server=on,wait=off,path=" + m.file("shell.sock"),
		"-device", "virtserialport,chardev=shell,name=shell",
		"-qmp", "unix:" + m.file("monitor.sock") + ",server=on,wait=off",
	}
}

// connect returns when the machine has booted.
func (m *Machine) connect(ctx context.Context) error {
	var shell, control net.Conn
	for path, connection := range map[string]*net.Conn{"shell.sock": &shell, "monitor.sock": &control} {
		err := m.qemu.WaitUntil(ctx, func(ctx context.Context) (err error) {
			*connection, err = new(net.Dialer).DialContext(ctx, "unix", m.file(path))
			return err
		})
		if err != nil {
			return err
		}
	}
	m.shell, m.monitor = shell, &monitor{out: control, in: bufio.NewReader(control)}
	go m.listen(shell)
	if err := m.Monitor("qmp_capabilities", nil); err != nil {
		return err
	}
	return m.WaitBoot(ctx)
}

// listen hands out what the machine's shell says until the machine ends.
func (m *Machine) listen(shell io.Reader) {
	lines, booted := bufio.NewReader(shell), ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		number, code, output, err := parseAnswer(line)
		if err != nil {
			continue // half of an answer: the machine was reset
		}
		if number == 0 {
			if output != booted { // else the shell alone was started again
				booted = output
				m.boots <- struct{}{}
			}
			continue
		}
		m.mu.Lock()
		if waits := m.runs[number]; waits != nil {
			waits <- answer{code, output}
		}
		m.mu.Unlock()
	}
}

// parseAnswer reads what guest/usr/local/sbin/shell writes.
func parseAnswer(line string) (number, code int, output string, err error) {
	var packed string
	if _, err := fmt.Sscan(line, &number, &code, &packed); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, 0, "", err
	}
	text, err := base64.StdEncoding.DecodeString(packed)
	return number, code, string(text), err
}

// WaitBoot returns when the machine has booted once more than it was waited for.
func (m *Machine) WaitBoot(ctx context.Context) error {
	select {
	case <-m.boots:
		return nil
	case <-m.qemu.Ended():
		return fmt.Errorf("the machine ended: %w", m.qemu.Err())
	case <-ctx.Done():
		return fmt.Errorf("wait for the machine to boot: %w\n%s", ctx.Err(), m.Console(20))
	}
}

// Run runs a script in the machine's bash, as root, and returns what it prints. Scripts can
// run at the same time.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	return m.call(ctx, script, base64.StdEncoding.EncodeToString([]byte(script)))
}

// KillUnit ends all processes of a unit of systemd, also where the machine can start none.
func (m *Machine) KillUnit(ctx context.Context, unit string) error {
	_, err := m.call(ctx, "kill "+unit, "kill "+unit)
	return err
}

// call sends a line to guest/usr/local/sbin/shell and returns the output that it answers.
func (m *Machine) call(ctx context.Context, script, line string) (string, error) {
	answered := make(chan answer, 1)
	m.mu.Lock()
	m.next++
	number := m.next
	m.runs[number] = answered
	_, err := fmt.Fprintf(m.shell, "%d %s\n", number, line)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.runs, number)
		m.mu.Unlock()
	}()
	if err != nil {
		return "", fmt.Errorf("run %q in the machine: %w", script, err)
	}
	select {
	case answer := <-answered:
		if answer.code != 0 {
			return answer.output, fmt.Errorf("run %q in the machine: exit code %d\n%s", script, answer.code, answer.output)
		}
		return answer.output, nil
	case <-m.qemu.Ended():
		return "", fmt.Errorf("run %q in the machine: it ended", script)
	case <-ctx.Done():
		return "", fmt.Errorf("run %q in the machine: %w\n%s", script, ctx.Err(), m.Console(20))
	}
}

// Console returns the last lines that the kernel and systemd wrote.
func (m *Machine) Console(lines int) string {
	text, err := os.ReadFile(m.file("console"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// SetCable pulls the cable of the machine's interface, or puts it back.
func (m *Machine) SetCable(isIn bool) error {
	return m.Monitor("set_link", map[string]any{"name": "cable", "up": isIn})
}

// Monitor runs a command of QEMU's monitor (QMP), such as stop or cont.
func (m *Machine) Monitor(command string, arguments map[string]any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.monitor.run(command, arguments)
}

// Stop ends the machine as a power cut would.
func (m *Machine) Stop() error { return m.qemu.Kill() }

func (m *Machine) file(name string) string { return filepath.Join(m.dir, name) }

// monitor is a connection to QEMU's monitor.
type monitor struct {
	out io.Writer
	in  *bufio.Reader
}

func (m *monitor) run(command string, arguments map[string]any) error {
	request, err := json.Marshal(struct {
		Execute   string         `json:"execute"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return err
	}
	if _, err := m.out.Write(append(request, '\n')); err != nil {
		return fmt.Errorf("%s of the machine's monitor: %w", command, err)
	}
	for { // among answers there are the greeting and events
		line, err := m.in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s of the machine's monitor: %w", command, err)
		}
		var reply struct {
			Return json.RawMessage `json:"return"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return err
		}
		switch {
		case reply.Error != nil:
			return fmt.Errorf("%s of the machine's monitor: %s", command, reply.Error)
		case reply.Return != nil:
			return nil
		}
	}
}
