package process

import (
	"os/exec"
	"testing"
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
