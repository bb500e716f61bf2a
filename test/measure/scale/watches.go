package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"

	"k8s.io/client-go/rest"
)

// watches is the child process that an agent is compared with: it watches each Node
// by name and does nothing else.
type watches struct {
	setup *setup
	open  sync.WaitGroup
}

func (w *watches) do(c command) (any, error) {
	if c.Op != "start" {
		return nil, fmt.Errorf("unknown command %q", c.Op)
	}
	errs := make(chan error, len(w.setup.Nodes))
	for i, node := range w.setup.Nodes {
		go func() { errs <- w.watch(node, addressOf(i+1)) }()
	}
	for range w.setup.Nodes {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// watch begins a watch on a connection of its own, and reads it to its end.
func (w *watches) watch(node string, host netip.Addr) error {
	config := w.setup.as(w.setup.Tokens[node])
	config.Dial = dialerOf(host).DialContext
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	url := w.setup.Host + "/api/v1/nodes?watch=1&resourceVersion=0&allowWatchBookmarks=true&fieldSelector=metadata.name%3D" + node
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("watch of %s: %s", node, response.Status)
	}
	w.open.Go(func() {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	})
	return nil
}
