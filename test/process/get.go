package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// getTimeout is how long one answer may take.
const getTimeout = 10 * time.Second

// Get asks a URL of a program, and returns the answer. One that is not 200 OK is
// an error.
func Get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %s", url, response.Status, bytes.TrimSpace(body[:min(len(body), 4096)]))
	}
	return body, nil
}
