package lock

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
			unlock, err := Take(t.Context(), path, func() { t.Error("waited for a lock that nobody has") })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Try(path); !errors.Is(err, ErrTaken) {
				t.Errorf("a second holder: %v, want %v", err, ErrTaken)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Take(ended, path, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("wait with an ended context: %v", err)
			}
			told := 0
			again, err := Take(t.Context(), path, func() {
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
	if _, err := Take(t.Context(), filepath.Join(t.TempDir(), "no", "folder"), nil); err == nil {
		t.Error("a lock in a folder that is not there: no error")
	}
}
