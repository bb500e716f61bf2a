package footprint

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// scrapeEvery is how often a Prometheus asks, in most clusters.
const scrapeEvery = 15 * time.Second

// accept is what Prometheus 3 sends by default.
const accept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
	"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

// scrape asks for a page as Prometheus does: compressed, if the program can.
func scrape(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	page, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return page, err
}

// scraper scrapes a program until its context ends.
type scraper struct {
	done  chan struct{}
	count int    // and the rest may be read when done is closed
	page  string // the last one
	err   error
}

func startScraper(ctx context.Context, client *http.Client, url string) *scraper {
	s := &scraper{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		every := time.NewTicker(scrapeEvery)
		defer every.Stop()
		for {
			page, err := scrape(ctx, client, url)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.err = fmt.Errorf("scrape: %w", err)
				return
			}
			s.count, s.page = s.count+1, string(page)
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
		}
	}()
	return s
}
