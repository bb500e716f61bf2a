package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/test/process"
)

// A child is this program once more. It takes a resource of the host as far as
// to its approach and says so. At the first line of its standard input it takes
// more, beyond the threshold, and says when it crossed that and when it had all.
// It keeps what it has until its standard input ends.

// What a child says. Three moments follow lineCrossed.
const (
	lineReady   = "ready"
	lineCrossed = "crossed"
)

// crossing is when the agent's threshold was crossed, when the kubelet's, and
// when all was taken that was to be taken. The first two are one moment but for
// memory, where the two do not read the same number.
type crossing struct{ own, kubelet, done moment }

// runChild is the child's side.
func runChild(name string, args []string, take func(numbers []uint64, stdin <-chan struct{}) error) int {
	var numbers []uint64
	for _, arg := range args {
		number, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return 2
		}
		numbers = append(numbers, number)
	}
	err := process.OfferToKiller()
	if err == nil {
		err = take(numbers, inputLines())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// inputLines yields a value for each line of the standard input, and is closed
// at its end.
func inputLines() <-chan struct{} {
	lines := make(chan struct{})
	go func() { // ends with the input or the process
		defer close(lines)
		for scanner := bufio.NewScanner(os.Stdin); scanner.Scan(); {
			lines <- struct{}{}
		}
	}()
	return lines
}

func (c crossing) print() { fmt.Println(lineCrossed, int64(c.own), int64(c.kubelet), int64(c.done)) }

// child is the parent's side.
type child struct {
	*process.Process
	input  io.WriteCloser
	output process.Lines
}

// startChild starts this program once more and waits until it is ready. It is
// killed when the context ends.
func (s *stage) startChild(ctx context.Context, name string, numbers ...uint64) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{name}
	for _, number := range numbers {
		args = append(args, strconv.FormatUint(number, 10))
	}
	c := &child{}
	command := exec.CommandContext(ctx, self, args...)
	command.Stdout, command.Stderr = &c.output, os.Stderr
	if c.input, err = command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if c.Process, err = s.kubelet.StartInside(name, command, ""); err != nil {
		return nil, err
	}
	if _, err := c.says(ctx, lineReady); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// says waits for a line that begins with the word, and returns the line.
func (c *child) says(ctx context.Context, word string) (line string, err error) {
	err = c.WaitLines(ctx, &c.output, func(lines []string) bool {
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, word) })
		if at >= 0 {
			line = lines[at]
		}
		return at >= 0
	})
	return line, err
}

// childLoad is a load that a child takes.
type childLoad struct {
	stage   *stage
	name    string
	numbers []uint64
	child   *child
}

func (l *childLoad) approach(ctx context.Context) (err error) {
	l.child, err = l.stage.startChild(ctx, l.name, l.numbers...)
	return err
}

func (l *childLoad) cross(ctx context.Context) (crossing, error) { return l.child.cross(ctx) }

func (l *childLoad) release() error {
	ended := l.child
	l.child = nil
	return ended.end()
}

// cross tells the child to take all, and waits until it has it.
func (c *child) cross(ctx context.Context) (crossing, error) {
	if _, err := fmt.Fprintln(c.input); err != nil {
		return crossing{}, fmt.Errorf("%s: tell it to go on: %w", c.Name(), err)
	}
	line, err := c.says(ctx, lineCrossed)
	if err != nil {
		return crossing{}, err
	}
	var own, kubelet, done int64
	if _, err := fmt.Sscanf(line, lineCrossed+" %d %d %d", &own, &kubelet, &done); err != nil {
		return crossing{}, fmt.Errorf("%s: said %q and not when it crossed the threshold: %w", c.Name(), line, err)
	}
	return crossing{moment(own), moment(kubelet), moment(done)}, nil
}

// end lets the child end, and with it all that it took is given back.
func (c *child) end() error {
	if c == nil {
		return nil
	}
	_ = c.input.Close() // it may have ended
	if err := c.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.Name(), err)
	}
	return nil
}
