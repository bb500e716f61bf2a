package process

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"
)

// Call runs the program to its end and returns its exit code and output.
func (s *SharedProgram) Call(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return Call(t, s.Path(t), args...)
}

// Call runs a program to its end, or that of the test, and returns its exit code and
// output.
func Call(t testing.TB, path string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	command := exec.CommandContext(t.Context(), path, args...) //nolint:gosec // our own binary
	command.Stdout, command.Stderr = &out, &complaints
	return CodeOf(t, command.Run()), out.String(), complaints.String()
}

// CodeOf returns the exit code of a command that ended with this error.
func CodeOf(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}
