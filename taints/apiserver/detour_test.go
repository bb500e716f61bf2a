package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// While the configured address is not reached, requests go to an endpoint, under the name that is
// configured, and later go back. A server at an endpoint that is not the API server gets none.
func TestDetour(t *testing.T) {
	const configured = "example.com:443" // the name in the certificates of net/http/httptest
	var isLost atomic.Bool
	var names atomic.Pointer[string]
	serve := func(certificates ...tls.Certificate) (*httptest.Server, *atomic.Int32) {
		requests := &atomic.Int32{}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			names.Store(&r.TLS.ServerName)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}`)) // the client tells
		}))
		server.EnableHTTP2, server.TLS = true, &tls.Config{Certificates: certificates}
		server.StartTLS()
		t.Cleanup(server.Close)
		return server, requests
	}
	byService, atService := serve()
	byEndpoint, atEndpoint := serve()
	stranger, atStranger := serve(selfSigned(t))
	address := func(s *httptest.Server) netip.AddrPort { return netip.MustParseAddrPort(s.Listener.Addr().String()) }
	client, err := NewClient(&rest.Config{
		Host: "https://example.com", QPS: -1, BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: byService.Certificate().Raw})},
		Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
			switch {
			case to != configured:
			case isLost.Load():
				return nil, syscall.ENETUNREACH
			default:
				to = byService.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	}, "a")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(what string, served *atomic.Int32) {
		t.Helper()
		before := served.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.GetNode(ctx, "a")
		isStranger := served == atStranger
		if (err != nil) != isStranger || (served.Load() == before) != isStranger || *names.Load() != "example.com" {
			t.Errorf("%s: %v; %d requests, then %d, for %s", what, err, before, served.Load(), *names.Load())
		}
	}
	ask("at first", atService)
	client.SetEndpoints([]netip.AddrPort{address(stranger)})
	isLost.Store(true)
	client.ObserveWay(true, false)
	ask("a stranger", atStranger)
	closed, _ := serve()
	closed.Close()
	client.SetEndpoints([]netip.AddrPort{address(closed), address(byEndpoint)})
	ask("an endpoint", atEndpoint)
	client.ObserveWay(false, true)
	isLost.Store(false)
	ask("it is avoided", atEndpoint)
	client.ObserveWay(false, false)
	ask("not for long enough", atEndpoint)
	client.detour.goodSince = time.Now().Add(-backAfter)
	client.ObserveWay(false, false)
	ask("back", atService)
}

// selfSigned is a certificate for the same name by nobody.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
