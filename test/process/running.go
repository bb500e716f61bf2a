package process

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Running says whether any process of this host with that ID runs. A zombie,
// which waits for a parent that may never ask, does not.
func Running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// WaitGone waits until no process with that ID runs. The process need not be a
// child of this one.
func WaitGone(ctx context.Context, pid int) error {
	for Running(pid) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askEvery):
		}
	}
	return nil
}
