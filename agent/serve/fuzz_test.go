package serve

import (
	"bufio"
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/metrics"
)

// FuzzRequest: whatever is asked of the port, it is answered with one of a few codes, and with
// few bytes where nothing is there.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		"GET /peer HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text\r\n\r\n",
		"POST /peer HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "GET //peer/../healthz?verbose HTTP/1.0\r\n\r\n",
		"GET /readyz HTTP/1.1\r\nHost: a\r\nPadding: " + string(bytes.Repeat([]byte("a"), 2000)) + "\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", "GET /peer HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	codes := []int{http.StatusOK, http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError}
	cfg := config.Default()
	f.Fuzz(func(t *testing.T, data []byte) {
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		request.RemoteAddr = "192.0.2.1:1000"
		now := time.Unix(1000, 0)
		s := &Server{Metrics: metrics.New("test"), Health: NewHealth(cfg, now), Fleet: fleet.Alone(), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, request)
		if !slices.Contains(codes, w.Code) || w.Code != http.StatusOK && w.Body.Len() > 8<<10 {
			t.Errorf("code %d with %d bytes", w.Code, w.Body.Len())
		}
	})
}
