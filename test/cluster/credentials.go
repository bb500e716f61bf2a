package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Files in the cluster's folder.
const (
	caFile         = "ca.crt"
	servingFile    = "serving.crt"
	servingKeyFile = "serving.key"
	accountKeyFile = "service-accounts.key"
	accountPubFile = "service-accounts.pub"
	kubeletFile    = "kubelet-client.crt" // of the API server, for kubectl logs
	kubeletKeyFile = "kubelet-client.key"
	tokenFile      = "tokens.csv"
)

// authority signs the certificates of the servers and of the users.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "taintlet-test"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return key, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %q: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(7 * 24 * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// issue makes a key and its certificate, both as PEM.
func (a *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	cert, err := sign(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return encode("CERTIFICATE", cert.Raw), keyPEM, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

// writeCredentials makes everything that the components read at start.
func (c *Cluster) writeCredentials(address net.IP) error {
	serving, servingKey, err := c.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "taintlet-test-server"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), address, net.ParseIP(serviceIP)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
	if err != nil {
		return err
	}
	kubelet, kubeletKey, err := c.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "taintlet-test-apiserver", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	account, err := newKey()
	if err != nil {
		return err
	}
	accountKey, err := encodeKey(account)
	if err != nil {
		return err
	}
	accountPub, err := x509.MarshalPKIXPublicKey(account.Public())
	if err != nil {
		return fmt.Errorf("encode the service accounts' key: %w", err)
	}
	for name, content := range map[string][]byte{
		caFile:         encode("CERTIFICATE", c.ca.cert.Raw),
		servingFile:    serving,
		servingKeyFile: servingKey,
		kubeletFile:    kubelet,
		kubeletKeyFile: kubeletKey,
		accountKeyFile: accountKey,
		accountPubFile: encode("PUBLIC KEY", accountPub),
		tokenFile:      fmt.Appendf(nil, "%s,admin,admin,system:masters\n", c.token),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write credentials: %w", err)
		}
	}
	return nil
}

// Admin returns the configuration of a client that may do everything. Its
// bearer token serves for plain HTTP requests too.
func (c *Cluster) Admin() *rest.Config { return c.WithToken(c.token) }

// WithToken returns the configuration of a client with a bearer token, such as
// one of a service account.
func (c *Cluster) WithToken(token string) *rest.Config {
	config := c.anonymous()
	config.BearerToken = token
	return config
}

// Config returns the configuration of a client who is the user, in the groups.
// The user may do what RBAC, the Node authorizer and admission let it do.
func (c *Cluster) Config(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	config := c.anonymous()
	config.CertData, config.KeyData = cert, key
	return config, nil
}

// anonymous is a client without identity, and without the default limit of
// client-go to 5 requests a second.
func (c *Cluster) anonymous() *rest.Config {
	return &rest.Config{
		Host:            c.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: encode("CERTIFICATE", c.ca.cert.Raw)},
		QPS:             -1,
	}
}

// WriteKubeconfig writes a client's configuration as a kubeconfig file, for
// kubectl or a component.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "taintlet-test"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, TLSServerName: config.ServerName, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token:                 config.BearerToken,
		TokenFile:             config.BearerTokenFile,
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
