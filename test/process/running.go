package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Running says whether any process of this host with that ID runs. A zombie,
// which waits for a parent that may never ask, does not.
func Running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
