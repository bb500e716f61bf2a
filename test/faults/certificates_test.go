package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// servers have the serving certificates of the API server that an agent sees.
type servers struct {
	ca, other authority
}

// authority signs serving certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	err         error
}

// authorities are the one that the agents trust and one that they do not know.
var authorities = sync.OnceValue(func() servers { return servers{newAuthority(), newAuthority()} })

// longAgo and inLongTime are beyond all steps of the agents' clocks.
func longAgo() time.Time    { return time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC) }
func inLongTime() time.Time { return time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC) }

func newAuthority() (a authority) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "taintlet-faults"}, NotBefore: longAgo(), NotAfter: inLongTime(),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	if a.key, a.err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); a.err != nil {
		return a
	}
	var der []byte
	if der, a.err = x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key); a.err != nil {
		return a
	}
	a.certificate, a.err = x509.ParseCertificate(der)
	return a
}

// pem is the authority's certificate for those who trust it.
func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue makes a new key and a serving certificate that is valid until then.
func (a authority) issue(until time.Time) (*tls.Certificate, error) {
	if a.err != nil {
		return nil, a.err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: longAgo(), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// serve gives all servers of the scene a new certificate. Connections do not outlast that, as
// with an API server that starts anew.
func (s *scene) serve(a authority, until time.Time) {
	certificate, err := a.issue(until)
	if err != nil {
		s.judge.complain(err.Error())
		return
	}
	for _, r := range s.running() {
		r.proxy.certificate.Store(certificate)
	}
	s.cut()
}

// rotateCertificate gives the API server another certificate of the same authority.
func (s *scene) rotateCertificate(uint64) (end func()) {
	s.serve(authorities().ca, inLongTime())
	return nothing
}

// expireCertificate has the API server's certificate be over.
func (s *scene) expireCertificate(uint64) (end func()) {
	s.serve(authorities().ca, time.Now().Add(-3*365*24*time.Hour))
	return func() { s.serve(authorities().ca, inLongTime()) }
}

// replaceAuthority has somebody else answer in the place of the API server.
func (s *scene) replaceAuthority(uint64) (end func()) {
	s.serve(authorities().other, inLongTime())
	return func() { s.serve(authorities().ca, inLongTime()) }
}
