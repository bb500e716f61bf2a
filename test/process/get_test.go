package process

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, "why not", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "ok")
	}))
	defer server.Close()
	if body, err := Get(t.Context(), server.Client(), server.URL+"/healthz"); err != nil || string(body) != "ok" {
		t.Errorf("answer %q, %v", body, err)
	}
	if _, err := Get(t.Context(), server.Client(), server.URL+"/readyz"); err == nil || !strings.Contains(err.Error(), "/readyz: 503 Service Unavailable: why not") {
		t.Errorf("an answer that is not 200: %v", err)
	}
	server.Close()
	if _, err := Get(t.Context(), server.Client(), server.URL+"/healthz"); err == nil {
		t.Error("no answer: no error")
	}
}
