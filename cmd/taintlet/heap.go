package main

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to 2 MiB before it is collected; with Go's 100 that is
// 4 MiB, and half as many collections. What an agent keeps is 0.6 MiB.
const gcPercent = 50

// keepHeapSmall has the agent's memory collected sooner, unless GOGC says otherwise.
func keepHeapSmall() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
