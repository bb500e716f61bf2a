// Command hog takes memory or tasks when it is told to, one line of its FIFO at a time:
//
//	grow BYTES MS     the process itself takes memory within that time
//	child BYTES MS    a new process does, which the next drop kills
//	threads N MS      the process starts threads
//	processes N MS    it starts processes
//	drop              it gives all of that back
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// The argument is the FIFO. With "grow BYTES MS" it is a child, and with "sleep" a task.
func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "grow":
		(&hog{}).do("grow", number(os.Args[2]), number(os.Args[3]))
		syscall.Pause() //nolint:errcheck // it ends by a signal
	case len(os.Args) == 2 && os.Args[1] == "sleep":
		syscall.Pause() //nolint:errcheck // it ends by a signal
	case len(os.Args) == 2:
		if err := serve(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(2)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return n
}

// serve reads commands until the FIFO is gone.
func serve(path string) error {
	if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	fifo, err := os.OpenFile(path, os.O_RDWR, 0) // so that it never ends
	if err != nil {
		return err
	}
	h := &hog{}
	lines := bufio.NewScanner(fifo)
	for lines.Scan() {
		var verb string
		var amount, ms int
		if n, _ := fmt.Sscan(lines.Text(), &verb, &amount, &ms); n < 1 { // drop has no numbers
			continue
		}
		h.do(verb, amount, ms)
	}
	return lines.Err()
}

// hog is what one process has taken.
type hog struct {
	blocks   [][]byte
	children []*exec.Cmd
	end      chan struct{} // of the threads
}

const block = 8 << 20

func (h *hog) do(verb string, amount, ms int) {
	over := time.Duration(ms) * time.Millisecond
	switch verb {
	case "grow":
		h.spread(amount/block, over, func() { h.take() })
	case "child":
		h.start("grow", strconv.Itoa(amount), strconv.Itoa(ms))
	case "threads":
		if h.end == nil {
			h.end = make(chan struct{})
		}
		h.spread(amount, over, func() { h.thread(h.end) })
	case "processes":
		h.spread(amount, over, func() { h.start("sleep") })
	case "drop":
		h.drop()
	}
}

// spread does something n times, evenly over a time.
func (h *hog) spread(n int, over time.Duration, do func()) {
	begin := time.Now()
	for i := range n {
		do()
		if ahead := over*time.Duration(i+1)/time.Duration(n) - time.Since(begin); ahead > time.Millisecond {
			time.Sleep(ahead)
		}
	}
}

func (h *hog) take() {
	pages, err := syscall.Mmap(-1, 0, block, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	h.blocks = append(h.blocks, pages)
}

func (h *hog) start(args ...string) {
	child := exec.Command(os.Args[0], args...) //nolint:noctx,gosec // drop ends it; it is this program
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Env = append(os.Environ(), "GOMAXPROCS=1")
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	h.children = append(h.children, child)
}

// thread starts a thread that waits for the end in the kernel.
func (h *hog) thread(end chan struct{}) {
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		close(ready)
		<-end
	}()
	<-ready
}

func (h *hog) drop() {
	for _, pages := range h.blocks {
		syscall.Munmap(pages) //nolint:errcheck // it was mapped
	}
	for _, child := range h.children {
		child.Process.Kill() //nolint:errcheck // it may have ended
		child.Wait()         //nolint:errcheck // it was killed
	}
	if h.end != nil {
		close(h.end)
	}
	*h = hog{}
	debug.FreeOSMemory()
}
