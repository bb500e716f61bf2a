package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

const (
	takeTasks = "take-tasks" // the argument that makes this program its child

	// tasksMargin is how far the threshold is above the tasks that there are at
	// first, and tasksTaken how many are then taken.
	tasksMargin = 1000
	tasksTaken  = 2000
	tasksStep   = 20
)

// tasksPlan says how many tasks mean what.
type tasksPlan struct {
	limit    uint64 // of the host
	atFirst  uint64 // tasks that there are
	leastFit uint64 // free tasks below which the host is short of them, for both
}

func planTasks() (tasksPlan, error) {
	p := tasksPlan{}
	var err error
	if p.atFirst, err = countTasks(); err != nil {
		return p, err
	}
	for _, setting := range []string{"pid_max", "threads-max"} {
		text, err := os.ReadFile("/proc/sys/kernel/" + setting)
		if err != nil {
			return p, fmt.Errorf("read the limit of tasks: %w", err)
		}
		limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return p, fmt.Errorf("read the limit of tasks, kernel.%s: %w", setting, err)
		}
		if p.limit == 0 || limit < p.limit {
			p.limit = limit
		}
	}
	if p.limit < p.atFirst+2*tasksTaken {
		return p, fmt.Errorf("this host has %d tasks of %d; it takes %d more", p.atFirst, p.limit, 2*tasksTaken)
	}
	p.leastFit = p.limit - p.atFirst - tasksMargin
	return p, nil
}

// tasks is the load that takes task identifiers, with threads.
type tasks struct {
	stage *stage
	child *child
}

func (t *tasks) approach(ctx context.Context) (err error) {
	p := t.stage.tasks
	t.child, err = t.stage.startChild(ctx, takeTasks, p.limit-p.leastFit)
	return err
}

func (t *tasks) cross(ctx context.Context) (crossing, error) { return t.child.cross(ctx) }

func (t *tasks) release() error {
	ended := t.child
	t.child = nil
	return ended.end()
}

// tasksChild is the child that takes tasks.
func tasksChild(numbers []uint64, stdin <-chan struct{}) error {
	if len(numbers) != 1 {
		return errors.New("the number is: tasks of the host that are too many")
	}
	fmt.Println(lineReady)
	if _, goOn := <-stdin; !goOn {
		return nil
	}
	var c crossing
	for taken := 0; taken < tasksTaken; taken += tasksStep {
		takeThreads(tasksStep)
		count, err := countTasks()
		if err != nil {
			return err
		}
		if c.own == 0 && count > numbers[0] {
			c.own = now()
		}
	}
	c.done = now()
	if c.own == 0 {
		return fmt.Errorf("the threshold of %d tasks was not crossed: others have ended theirs", numbers[0])
	}
	c.kubelet = c.own
	c.print()
	<-stdin
	return nil
}

// takeThreads returns when count more threads are there. They stay as long as
// the process.
func takeThreads(count int) {
	var started sync.WaitGroup
	for range count {
		started.Add(1)
		go func() { // ends with the process: that is its purpose
			runtime.LockOSThread()
			started.Done()
			select {}
		}()
	}
	started.Wait()
}

// countTasks counts the host's processes and threads: the fourth field of
// /proc/loadavg has those that run, and after a slash all.
func countTasks() (uint64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return 0, fmt.Errorf("count tasks: /proc/loadavg is %q", text)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	count, err := strconv.ParseUint(all, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("count tasks: /proc/loadavg is %q: %w", text, err)
	}
	return count, nil
}
