package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/process"
)

// Underway is after how long each connection of a flood has sent its first request, and
// its priority level has borrowed what it can. The API server settles that every
// 10 s (borrowingAdjustmentPeriod in k8s.io/apiserver/pkg/util/flowcontrol).
const Underway = 25 * time.Second

// LargeRequest is what Flood sends.
type LargeRequest struct {
	As               *rest.Config
	Verb, Path, Type string
	Body             string
}

// LargePatch gives a Node so many annotations, which the policies refuse.
func LargePatch(as *rest.Config, node string, annotations int) LargeRequest {
	return LargeRequest{as, http.MethodPatch, "/api/v1/nodes/" + node + "?fieldManager=taintlet", "application/merge-patch+json", fmt.Sprintf(`{"metadata": %s}`, manyAnnotations(annotations))}
}

// LargeReview is a question that every account may ask, with so many annotations.
func LargeReview(as *rest.Config, annotations int) LargeRequest {
	return LargeRequest{as, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json",
		fmt.Sprintf(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": %s, "spec": {"resourceAttributes": {"verb": "get"}}}`, manyAnnotations(annotations))}
}

func manyAnnotations(count int) string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprintf("a%d", i)] = ""
	}
	text, err := json.Marshal(map[string]any{"annotations": all})
	if err != nil {
		panic(err) // strings only
	}
	return string(text)
}

// Flood sends the request again and again on that many connections, one at a time on
// each, until end is called. end waits until the API server is idle and returns how many
// were answered.
func (c *Cluster) Flood(ctx context.Context, connections int, r LargeRequest) (end func() (answered int, err error), err error) {
	config, err := rest.TLSConfigFor(r.As)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	var answers atomic.Int64
	for range connections {
		workers.Go(func() {
			transport := &http.Transport{TLSClientConfig: config.Clone(), MaxConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				if c.send(ctx, transport, r) == nil { // an error: the end, or the API server is too busy
					answers.Add(1)
				}
			}
		})
	}
	return func() (int, error) {
		cancel()
		workers.Wait()
		return int(answers.Load()), c.waitIdle()
	}, nil
}

// waitIdle waits until the API server has ended the requests whose clients are gone:
// until it uses less than half a core.
func (c *Cluster) waitIdle() error {
	const patience = 5 * time.Minute
	pid := c.Processes()[APIServer]
	before, err := process.UsageOf(pid)
	for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); {
		time.Sleep(time.Second) // the time over which use is measured
		var now process.Usage
		if now, err = process.UsageOf(pid); now.CPU-before.CPU < time.Second/2 {
			return err
		}
		before = now
	}
	return errors.Join(err, fmt.Errorf("the API server is still busy %s after a flood", patience))
}

func (c *Cluster) send(ctx context.Context, transport *http.Transport, r LargeRequest) error {
	request, err := http.NewRequestWithContext(ctx, r.Verb, c.url+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.As.BearerToken)
	request.Header.Set("Content-Type", r.Type)
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()                 //nolint:errcheck // only that it came matters
	_, err = io.Copy(io.Discard, answer.Body) // the next one is sent on the same connection
	return err
}
