package cluster

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Expired returns a token of a service account as it is an hour after its end. The API
// server has signed it, and refuses it.
func (c *Cluster) Expired(token string) (string, error) {
	header, rest, found := strings.Cut(token, ".")
	claims, _, isWhole := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil || !found || !isWhole {
		return "", fmt.Errorf("this is no token of a service account: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return "", fmt.Errorf("claims of a token: %w", err)
	}
	now := time.Now()
	content["iat"], content["nbf"], content["exp"] = now.Add(-2*time.Hour).Unix(), now.Add(-2*time.Hour).Unix(), now.Add(-time.Hour).Unix()
	if text, err = json.Marshal(content); err != nil {
		return "", fmt.Errorf("claims of a token: %w", err)
	}
	signed := header + "." + base64.RawURLEncoding.EncodeToString(text)
	signature, err := c.signToken(signed)
	return signed + "." + signature, err
}

// signToken signs as the API server does: ES256 (RFC 7518, 3.4).
func (c *Cluster) signToken(text string) (string, error) {
	file, err := os.ReadFile(filepath.Join(c.dir, accountKeyFile))
	if err != nil {
		return "", fmt.Errorf("the service accounts' key: %w", err)
	}
	block, _ := pem.Decode(file)
	if block == nil {
		return "", errors.New("the service accounts' key is no PEM")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("the service accounts' key: %w", err)
	}
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, hash[:])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)), nil
}
