package faults

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// moment is how long a client waits for an answer that never comes, patient how long for
	// one that does.
	moment  = 500 * time.Millisecond
	patient = time.Minute
)

// asked is what a client gets of the proxy. Its connections are kept.
func asked(t *testing.T, client *http.Client, url string, within time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// A connection that fell silent stays so, and a new one does not. A client that trusts the
// authority refuses what it should.
func TestProxyFallsSilentAndChangesItsCertificate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") }))
	defer server.Close()
	p := newProxy(t, &rest.Config{Host: server.URL}, func(call, string) {})
	through := p.configFor(&rest.Config{Host: server.URL})
	client, err := rest.HTTPClientFor(through)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := rest.TLSConfigFor(through)
	if err != nil {
		t.Fatal(err)
	}
	anew := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
	isWell := func(when string, client *http.Client) {
		t.Helper()
		if text, err := asked(t, client, p.front.URL, patient); text != "well" {
			t.Errorf("%s: %q, %v", when, text, err)
		}
	}
	isWell("at the beginning", client)
	p.wire.silence(true)
	if _, err := asked(t, client, p.front.URL, moment); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent connection: %v", err)
	}
	p.wire.silence(false)
	before := p.wire.count()
	if _, err := asked(t, client, p.front.URL, moment); !errors.Is(err, context.DeadlineExceeded) || p.wire.count() != before {
		t.Errorf("a connection that fell silent: %v, %d new ones", err, p.wire.count()-before)
	}
	isWell("by a new connection", anew)
	for _, wrong := range []struct {
		a     authority
		until time.Time
		want  string
	}{
		{authorities().ca, time.Now().Add(-time.Hour), "certificate has expired"},
		{authorities().other, inLongTime(), "certificate signed by unknown authority"},
	} {
		certificate, err := wrong.a.issue(wrong.until)
		if err != nil {
			t.Fatal(err)
		}
		p.certificate.Store(certificate)
		if _, err := asked(t, anew, p.front.URL, patient); err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("%v, want %q", err, wrong.want)
		}
	}
}
