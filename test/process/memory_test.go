package process

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// A small program has little memory, however much its caller has.
func TestMemoryIsThatOfTheProgram(t *testing.T) {
	const mine, most = 128 << 20, 32 << 10 // bytes, KiB
	ballast := make([]byte, mine)
	for i := range ballast {
		ballast[i] = 1
	}
	got, err := RunMeasured(t.Context(), exec.Command("sleep", "0.1"))
	if err != nil || got == 0 || got > most {
		t.Errorf("%d KiB, %v", got, err)
	}
	if ballast[mine-1] != 1 {
		t.Error("unreachable: it keeps the ballast")
	}
}

func TestAMeasuredProgramEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := RunMeasured(ctx, exec.Command("sleep", "1000"))
	if exit, isExit := errors.AsType[*exec.ExitError](err); !isExit || exit.Exited() {
		t.Errorf("%v", err)
	}
}
