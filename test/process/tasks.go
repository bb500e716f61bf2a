package process

import (
	"fmt"
	"os"
	"strings"
)

// ReadHostTasks counts the processes and threads of this host, and says how many there can be.
func ReadHostTasks() (used, limit uint64, err error) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, 0, fmt.Errorf("count tasks: %w", err)
	}
	_, all, _ := strings.Cut(string(load), "/") // after those that run
	if _, err := fmt.Sscan(all, &used); err != nil {
		return 0, 0, fmt.Errorf("count tasks: /proc/loadavg is %q: %w", load, err)
	}
	for _, setting := range []string{"pid_max", "threads-max"} {
		text, err := os.ReadFile("/proc/sys/kernel/" + setting)
		if err != nil {
			return 0, 0, fmt.Errorf("read the limit of tasks: %w", err)
		}
		var most uint64
		if _, err := fmt.Sscan(string(text), &most); err != nil {
			return 0, 0, fmt.Errorf("read the limit of tasks, kernel.%s: %w", setting, err)
		}
		if limit == 0 || most < limit {
			limit = most
		}
	}
	return used, limit, nil
}
