package bench

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/taintlet/taintlet/test/process"
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
	if p.atFirst, p.limit, err = process.ReadHostTasks(); err != nil {
		return p, err
	}
	if p.limit < p.atFirst+2*tasksTaken {
		return p, fmt.Errorf("this host has %d tasks of %d; it takes %d more", p.atFirst, p.limit, 2*tasksTaken)
	}
	p.leastFit = p.limit - p.atFirst - tasksMargin
	return p, nil
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
		count, _, err := process.ReadHostTasks()
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
