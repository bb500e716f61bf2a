package faults

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// clockCode takes the place of clock_gettime in the vDSO, the page of code that the kernel
// maps into each process. It asks the kernel and adds as many seconds to CLOCK_REALTIME as
// the 8 bytes after it say:
//
//	mov  eax, 228           // clock_gettime(edi: clock, rsi: *timespec)
//	syscall
//	test edi, edi
//	jne  done
//	mov  rcx, [rip+offset]
//	add  [rsi], rcx
//	done: ret
func clockCode() []byte {
	return []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00,
		0x0f, 0x05,
		0x85, 0xff,
		0x75, 0x0a,
		0x48, 0x8b, 0x0d, 0x04, 0x00, 0x00, 0x00,
		0x48, 0x01, 0x0e,
		0xc3,
	}
}

// stepClock steps the wall clock of one process, as everything in it sees it: the process
// has a vDSO of its own as soon as somebody writes to it. The clocks of the machine and of
// all other processes stay.
func stepClock(pid int, step time.Duration) error {
	memory, err := os.OpenFile(procFile(pid, "mem"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close() //nolint:errcheck // each write is checked
	begin, end, err := vdsoOf(pid)
	if err != nil {
		return err
	}
	image := make([]byte, end-begin)
	if _, err := memory.ReadAt(image, begin); err != nil {
		return fmt.Errorf("read the vDSO: %w", orNoMemory(err))
	}
	code := clockCode()
	at, err := clockSymbol(image, len(code)+8)
	if err != nil {
		return err
	}
	resume, err := stopOutside(pid, begin, end)
	if err != nil {
		return err
	}
	defer resume()
	var before int64 // steps add up
	if bytes.HasPrefix(image[at:], code) {
		before = int64(binary.LittleEndian.Uint64(image[at+len(code):]))
	}
	patch := binary.LittleEndian.AppendUint64(code, uint64(before+int64(step/time.Second)))
	if _, err := memory.WriteAt(patch, begin+int64(at)); err != nil {
		return fmt.Errorf("write the vDSO: %w", orNoMemory(err))
	}
	return nil
}

// orNoMemory tells a process that has ended by what its memory says then: os.File takes the
// nothing that was read for io.EOF, and the nothing that was written for io.ErrUnexpectedEOF.
func orNoMemory(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoMemory
	}
	return err
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// vdsoOf returns where a process has its vDSO. One that has just begun gets it after its
// stack (begin_new_exec and load_elf_binary in the kernel's fs/), so it waits.
func vdsoOf(pid int) (begin, end int64, err error) {
	for range 100_000 {
		maps, err := os.ReadFile(procFile(pid, "maps"))
		if err != nil {
			return 0, 0, err
		}
		if len(maps) == 0 {
			return 0, 0, errNoMemory
		}
		for line := range strings.Lines(string(maps)) {
			if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
				_, err := fmt.Sscanf(line, "%x-%x", &begin, &end)
				return begin, end, err
			}
		}
		time.Sleep(100 * time.Microsecond) // there is no event to wait for
	}
	return 0, 0, fmt.Errorf("process %d has no vDSO", pid)
}

// clockSymbol returns where clock_gettime begins in a vDSO. It needs as many bytes.
func clockSymbol(image []byte, size int) (at int, err error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(size) {
			return int(s.Value), nil
		}
	}
	return 0, fmt.Errorf("the vDSO has no clock_gettime of %d bytes", size)
}

// stopOutside stops all threads of a process while none of them executes anything in the
// range.
func stopOutside(pid int, begin, end int64) (resume func(), err error) {
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // it may have been killed
	for range 1000 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return nil, err
		}
		isOutside, err := isStoppedOutside(pid, begin, end)
		if err == nil && isOutside {
			return resume, nil
		}
		resume()
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond) // so that its threads go on
	}
	return nil, errors.New("a thread always executes something in the vDSO")
}

// isStoppedOutside waits until all threads are stopped.
func isStoppedOutside(pid int, begin, end int64) (bool, error) {
	tasks, err := os.ReadDir(procFile(pid, "task"))
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		isOutside, err := isThreadOutside(procFile(pid, filepath.Join("task", task.Name())), begin, end)
		isOver := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) // the thread has ended
		if err != nil && !isOver || err == nil && !isOutside {
			return false, err
		}
	}
	return true, nil
}

// isThreadOutside reports whether a thread is stopped outside of the range.
func isThreadOutside(folder string, begin, end int64) (bool, error) {
	for try := 0; ; try++ {
		stat, err := os.ReadFile(filepath.Join(folder, "stat")) //nolint:gosec // of procfs
		if err != nil {
			return false, err
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if strings.ContainsRune("TZX", rune(after[0])) { // stopped, or at its end
			break
		}
		if try > 1000 { // somebody lets it go on
			return false, nil
		}
		time.Sleep(100 * time.Microsecond) // there is no event to wait for
	}
	// "-1 SP PC" where no system call is under way, else its number, six arguments, SP and PC.
	call, err := os.ReadFile(filepath.Join(folder, "syscall")) //nolint:gosec // of procfs
	if err != nil {
		return false, err
	}
	fields := strings.Fields(string(call))
	if len(fields) < 2 {
		return false, nil // it is not stopped
	}
	at, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
	if err != nil {
		return false, err
	}
	return at < uint64(begin) || at >= uint64(end), nil //nolint:gosec // addresses of a process are positive
}

// A process that ends while its clock is stepped is no fault of the suite's.
func TestMemoryOfAnEndedProcess(t *testing.T) {
	p, err := process.Start("a process", process.Command("sleep", "60"), "")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.OpenFile(procFile(p.PID(), "mem"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close() //nolint:errcheck // nothing is written
	at, _, err := vdsoOf(p.PID())
	if err := errors.Join(err, p.Kill()); err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 8)
	_, read := memory.ReadAt(page, at)
	_, written := memory.WriteAt(page, at)
	for _, err := range []error{read, written} {
		if !errors.Is(orNoMemory(err), errNoMemory) {
			t.Errorf("%v does not tell that the process has ended", err)
		}
	}
}
