package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
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
// memory, where the two do not look at the same number.
type crossing struct{ own, kubelet, done moment }

// runChild is the child's side.
func runChild(name string, args []string, take func(numbers []uint64, stdin <-chan struct{}) error) int {
	var numbers []uint64
	for _, arg := range args {
		number, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return exitUsage
		}
		numbers = append(numbers, number)
	}
	// If memory ends after all, no other program should pay.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600); err != nil {
		fmt.Fprintf(os.Stderr, "%s: offer this process to the OOM killer: %v\n", name, err)
		return exitFailed
	}
	if err := take(numbers, inputLines()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitFailed
	}
	return exitOK
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
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
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
	c := &child{name: name, cmd: exec.CommandContext(ctx, self, args...)}
	c.cmd.Stderr = os.Stderr
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.stdout = bufio.NewReader(stdout)
	if err := s.kubelet.Run(c.cmd); err != nil {
		return nil, err
	}
	line, err := c.stdout.ReadString('\n')
	if err != nil || line != lineReady+"\n" {
		return nil, errors.Join(fmt.Errorf("%s: said %q and not %q: %w", name, line, lineReady, errors.Join(err)), c.end())
	}
	return c, nil
}

// cross tells the child to take all, and waits until it has it.
func (c *child) cross() (crossing, error) {
	if _, err := fmt.Fprintln(c.stdin); err != nil {
		return crossing{}, fmt.Errorf("%s: tell it to go on: %w", c.name, err)
	}
	var word string
	var own, kubelet, done int64
	if _, err := fmt.Fscan(c.stdout, &word, &own, &kubelet, &done); err != nil || word != lineCrossed {
		return crossing{}, fmt.Errorf("%s: said %q and not when it crossed the threshold: %w", c.name, word, errors.Join(err))
	}
	return crossing{moment(own), moment(kubelet), moment(done)}, nil
}

// end lets the child end, and with it all that it took is given back.
func (c *child) end() error {
	if c == nil {
		return nil
	}
	_ = c.stdin.Close() // it may have ended
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}
