package process

import (
	"os/exec"
	"testing"
)

func TestCloseEndsWhatTheThreadStarted(t *testing.T) {
	thread, err := NewThread(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := thread.Start("sleep", exec.Command("sleep", "infinity"), "")
	if err != nil {
		t.Fatal(err)
	}
	thread.Close()
	select {
	case <-p.Ended():
	case <-soon(t).Done():
		t.Error("the process outlives its thread")
		p.Kill() //nolint:errcheck // the test has failed
	}
}
