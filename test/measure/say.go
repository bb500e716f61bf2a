package measure

import (
	"fmt"
	"os"
	"time"
)

// Say tells whoever waits what is being done, with the time. It is no part of the
// result.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
