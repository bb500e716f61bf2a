package process

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestALockHasOneHolder(t *testing.T) {
	folder := t.TempDir()
	for what, path := range map[string]string{"file": filepath.Join(folder, "lock"), "folder": folder} {
		t.Run(what, func(t *testing.T) {
			unlock, err := Lock(t.Context(), path, func() { t.Error("waited for a lock that nobody has") })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
				t.Errorf("a second holder: %v, want %v", err, ErrLocked)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Lock(ended, path, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("wait with an ended context: %v", err)
			}
			told := 0
			again, err := Lock(t.Context(), path, func() {
				told++
				unlock()
			})
			if err != nil {
				t.Fatal(err)
			}
			again()
			if told != 1 {
				t.Errorf("told %d times that the lock is taken", told)
			}
		})
	}
}

func TestNothingToLock(t *testing.T) {
	if _, err := Lock(t.Context(), filepath.Join(t.TempDir(), "no", "folder"), nil); err == nil {
		t.Error("a lock in a folder that is not there: no error")
	}
}
