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

// hasten makes an answer put nothing off for longer than that.
func hasten(answer http.Header) {
	said := answer.Get("Retry-After")
	if said == "" {
		return
	}
	if seconds, err := strconv.Atoi(said); err != nil || seconds > maxRetryAfter {
		answer.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
}
