package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// requests counts, by user, the requests that the API server received between
// two moments. A watch counts when it begins.
func requests(auditLog string, begin, end time.Time) (map[string]int, error) {
	file, err := os.Open(auditLog)
	if err != nil {
		return nil, fmt.Errorf("count requests: %w", err)
	}
	defer func() { _ = file.Close() }()
	type record struct {
		AuditID  string    `json:"auditID"`
		Received time.Time `json:"requestReceivedTimestamp"`
		User     struct {
			Username string `json:"username"`
		} `json:"user"`
	}
	counts, counted := map[string]int{}, map[string]bool{}
	for decoder := json.NewDecoder(file); ; {
		var r record
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return counts, nil
		case errors.Is(err, io.ErrUnexpectedEOF): // it is being written
			return counts, nil
		case err != nil:
			return nil, fmt.Errorf("count requests in %s: %w", auditLog, err)
		}
		// A watch has two records: of its begin and of its end.
		if !counted[r.AuditID] && r.Received.After(begin) && r.Received.Before(end) {
			counted[r.AuditID] = true
			counts[r.User.Username]++
		}
	}
}
