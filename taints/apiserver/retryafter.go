package apiserver

import (
	"net/http"
	"strconv"
)

// maxRetryAfter is the longest that client-go sleeps, in seconds, before it asks
// again what the API server, or a proxy before it, has put off. It would sleep for
// as long as the answer says, and a watch for hours: until then the Node would not
// be seen. The API server itself says 1 s (Retry-After in
// k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go).
const maxRetryAfter = 1

// impatient is a transport whose answers put nothing off for longer than that.
type impatient struct{ http.RoundTripper }

// RoundTrip makes the request.
func (i impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if said := response.Header.Get("Retry-After"); said != "" {
		if seconds, err := strconv.Atoi(said); err != nil || seconds > maxRetryAfter {
			response.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
		}
	}
	return response, nil
}
