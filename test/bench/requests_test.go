package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRequestsAreCountedOnceAndInTheirTime(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	err := os.WriteFile(log, []byte(`{"auditID":"1","user":{"username":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:00.5Z"}
{"auditID":"2","stage":"ResponseStarted","user":{"username":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:01.5Z"}
{"auditID":"2","stage":"ResponseComplete","user":{"username":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:01.5Z"}
{"auditID":"3","user":{"username":"b"},"requestReceivedTimestamp":"2026-01-01T00:00:01.7Z"}
{"auditID":"4","user":{"username":"b"},"requestReceivedTimestamp":"2026-01-01T00:00:02.5Z"}
{"auditID":"5","us`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	second := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	got, err := requests(log, second(1), second(2))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"a": 1, "b": 1}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
