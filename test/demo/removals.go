package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// removals counts, by the API server's audit log, how often the controller
// manager asked for the removal of the taint and was told that it is done.
type removals struct {
	path   string
	node   string
	offset int64 // read so far
	seen   int
}

// waitFor waits until there have been so many. A log file tells nobody that it
// grew, so it is looked at again and again.
func (r *removals) waitFor(ctx context.Context, count int) error {
	for {
		if err := r.read(); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if r.seen >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// read takes in the whole lines that are new.
func (r *removals) read() error {
	file, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(r.offset, io.SeekStart); err != nil {
		return err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	for line := range bytes.Lines(data[:whole]) {
		var entry auditEntry
		if err := json.Unmarshal(line, &entry); err != nil {
			return err
		}
		if entry.removesTaint(r.node) {
			r.seen++
		}
	}
	r.offset += int64(whole)
	return nil
}

// auditEntry is what matters here of an audit.k8s.io/v1 Event.
type auditEntry struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	RequestObject struct {
		Spec struct {
			// Taints is nil when the patch does not speak of them; one that
			// removes them all says null.
			Taints json.RawMessage `json:"taints"`
		} `json:"spec"`
	} `json:"requestObject"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// removesTaint says whether the node-lifecycle-controller wrote a list of
// taints without ours and was answered 200.
func (e auditEntry) removesTaint(node string) bool {
	if e.User.Username != "system:serviceaccount:kube-system:node-controller" || e.Verb != "patch" ||
		e.ObjectRef.Resource != "nodes" || e.ObjectRef.Name != node || e.ObjectRef.Subresource != "" ||
		e.ResponseStatus.Code != http.StatusOK || e.RequestObject.Spec.Taints == nil {
		return false
	}
	var wanted []corev1.Taint
	if err := json.Unmarshal(e.RequestObject.Spec.Taints, &wanted); err != nil {
		return false
	}
	return !slices.ContainsFunc(wanted, func(t corev1.Taint) bool { return t.Key == memoryTaint })
}
