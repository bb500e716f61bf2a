package faults

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// answering is an answer of the API server that refuses.
func answering(code int32, reason metav1.StatusReason, retryAfter string) *fault {
	name := strings.ToLower(http.StatusText(int(code)))
	if retryAfter != "" {
		name += ", Retry-After " + retryAfter
	}
	return &fault{name: name, instead: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(int(code))
		write(w, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: code, Reason: reason, Message: "a fault of the test",
		})
	}}
}

// write writes a JSON text. The agent may hang up.
func write(w io.Writer, object any) {
	_ = json.NewEncoder(w).Encode(object)
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// hold waits until the agent gives up.
func hold(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// slowly reads little at a time.
type slowly struct{ io.ReadCloser }

func (s slowly) Read(into []byte) (int, error) {
	time.Sleep(50 * time.Millisecond) // the fault itself
	return s.ReadCloser.Read(into[:min(len(into), 400)])
}

// half is the first half of an answer and then an error.
func half(answer *http.Response) error {
	whole, err := io.ReadAll(io.LimitReader(answer.Body, 2000)) // a watch has no end
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), broken{}))
	return nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// requestFaults are the faults that befall single requests.
func requestFaults() []*fault {
	return []*fault{
		answering(http.StatusConflict, metav1.StatusReasonConflict, ""),
		answering(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, ""),
		answering(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "1"),
		answering(http.StatusInternalServerError, metav1.StatusReasonInternalError, ""),
		answering(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, ""),
		answering(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "1"),
		answering(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, ""),
		answering(http.StatusForbidden, metav1.StatusReasonForbidden, ""),
		answering(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, ""),
		{name: "answer lost after it landed", landed: func(*http.Response) error { return errNoAnswer }},
		{name: "half-open: it landed, no answer comes", landed: func(answer *http.Response) error {
			<-answer.Request.Context().Done()
			return errNoAnswer
		}},
		{name: "black hole: it never arrives", instead: hold},
		{name: "truncated answer", landed: half},
		{name: "slow answer", landed: func(answer *http.Response) error {
			answer.Body = slowly{answer.Body}
			return nil
		}},
		{name: "connection cut before it arrives", instead: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	}
}
