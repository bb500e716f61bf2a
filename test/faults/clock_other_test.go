//go:build !amd64

package faults

import (
	"fmt"
	"runtime"
	"time"
)

// stepClock knows no code of this processor.
func stepClock(int, time.Duration) error {
	return fmt.Errorf("the wall clock of a process cannot be stepped on %s", runtime.GOARCH)
}
