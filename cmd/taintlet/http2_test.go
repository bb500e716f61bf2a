package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// The binary is linked without net/http's own HTTP/2. Without client-go's beside it
// each request that runs at the same time as others would take a connection.
func TestHTTP2IsSpokenToTheAPIServer(t *testing.T) {
	protocols := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case protocols <- r.Proto:
		default:
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	authority, kubeconfig := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "kubeconfig")
	for file, text := range map[string]string{
		authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		kubeconfig: fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q, certificate-authority: %q}}],
			contexts: [{name: a, context: {cluster: a}}], current-context: a}`, server.URL, authority),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, _, stderr := program.Call(t, "cleanup", "all", "--dry-run", "--kubeconfig="+kubeconfig)
	select {
	case protocol := <-protocols:
		if protocol != "HTTP/2.0" {
			t.Errorf("asked by %s", protocol)
		}
	default:
		t.Fatalf("nothing was asked: exit code %d, %s", code, stderr)
	}
}
