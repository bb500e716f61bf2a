package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/client-go/rest"
)

// ErrTooLarge is the error of a request whose answer is larger than its bound. What
// is beyond the bound was not read.
var ErrTooLarge = errors.New("the answer of the API server is larger")

// Bounds of the answers of the API server, in bytes, after they are unpacked. An account that may
// write an object can fill it with annotations: etcd accepts requests of 1.5 MiB
// (--max-request-bytes).
const (
	// maxObject is for one object.
	maxObject = 4 << 20
	// maxPage is for a page of Nodes or pods; a larger one is asked for again in smaller
	// pages.
	maxPage = 8 << 20
	// maxSliceList is for the metadata of the EndpointSlices of a Service: 1 KB for each
	// 100 endpoints.
	maxSliceList = 1 << 20
	// maxSlice is for one EndpointSlice, of at most 1,000 endpoints
	// (--max-endpoints-per-slice of the controller manager).
	maxSlice = 1 << 20
	// maxLease is for a Lease, which has less than 1 KB.
	maxLease = 64 << 10
	// maxError is how much of an error is read. What is beyond it is left out: the
	// status code says enough.
	maxError = 64 << 10
)

type boundKey struct{}

// within returns a context in which the answer to a request has at most this many bytes.
func within(ctx context.Context, most int64) context.Context {
	return context.WithValue(ctx, boundKey{}, most)
}

// Bound limits the answers to the requests of a configuration: their size, and for
// how long they put a request off. Watches are not limited: client-go limits each of
// their events to 16 MiB.
func Bound(config *rest.Config, most int64) {
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper { return bounded{transport, most} })
}

// bounded is a transport whose answers have a bound: most, unless the context of a
// request has another one.
type bounded struct {
	http.RoundTripper
	most int64
}

// RoundTrip makes the request.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil || response.Body == nil {
		return response, err
	}
	hasten(response.Header)
	if response.StatusCode >= http.StatusMultipleChoices {
		response.Body = body{io.LimitReader(response.Body, maxError), response.Body}
		return response, nil
	}
	if request.URL.Query().Has("watch") {
		return response, nil
	}
	most := b.most
	if own, ok := request.Context().Value(boundKey{}).(int64); ok {
		most = own
	}
	response.Body = body{&boundedReader{response.Body, most, most}, response.Body}
	return response, nil
}

// body is the body of an answer, read through another reader.
type body struct {
	io.Reader
	io.Closer
}

// boundedReader fails when there is more to read than its bound.
type boundedReader struct {
	from       io.Reader
	left, most int64
}

// Read reads what is left, and one byte more to see whether that was all.
func (r *boundedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.from.Read(p)
	if int64(n) > r.left {
		return int(r.left), fmt.Errorf("%w than %d KiB", ErrTooLarge, r.most>>10)
	}
	r.left -= int64(n)
	return n, err
}

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
