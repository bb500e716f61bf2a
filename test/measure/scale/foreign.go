package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// foreignEvery is how often the foreign client asks. It does not wait for the answer
// before: a slow server does not hide how slow it is.
const foreignEvery = 50 * time.Millisecond

// foreignObject is what it asks for.
const foreignObject = "foreign"

// foreign is the child process of a client that has nothing to do with taintlet: a
// service account that reads a ConfigMap, without any retry.
type foreign struct {
	url    string
	client *http.Client
	mu     sync.Mutex
	asked  []asked
}

// asked is one request: when it began, how long it took and the answer's code; 0:
// none.
type asked struct {
	at   time.Time
	took time.Duration
	code int
}

func newForeign(s *setup) *foreign {
	client, err := rest.HTTPClientFor(s.as(s.Foreign))
	if err != nil {
		panic(err) // a configuration of our own
	}
	f := &foreign{url: s.Host + "/api/v1/namespaces/default/configmaps/" + foreignObject, client: client}
	go func() {
		for range time.Tick(foreignEvery) {
			go f.ask()
		}
	}()
	return f
}

func (f *foreign) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a := asked{at: time.Now()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		panic(err) // a URL of our own
	}
	if response, err := f.client.Do(request); err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err == nil {
			a.code = response.StatusCode
		}
	}
	a.took = time.Since(a.at)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, a)
}

func (f *foreign) do(c command) (any, error) {
	if c.Op != "report" {
		return nil, fmt.Errorf("unknown command %q", c.Op)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return latencyOf(f.asked, c.From, c.To), nil
}

// latency is how requests of one kind fared within some time.
type latency struct {
	Requests, TooMany, Failed int
	P50, P99, Max             time.Duration
}

func latencyOf(all []asked, from, to time.Time) latency {
	var l latency
	var took []time.Duration
	for _, a := range all {
		if a.at.Before(from) || a.at.After(to) {
			continue
		}
		l.Requests++
		took = append(took, a.took)
		switch {
		case a.code == http.StatusTooManyRequests:
			l.TooMany++
		case a.code/100 != 2:
			l.Failed++
		}
	}
	if len(took) == 0 {
		return l
	}
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[min(len(took)-1, int(share*float64(len(took))))] }
	l.P50, l.P99, l.Max = at(0.5), at(0.99), took[len(took)-1]
	return l
}
