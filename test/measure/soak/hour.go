package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	"github.com/taintlet/taintlet/test/measure"
)

const (
	observeEvery = 5 * time.Second
	scrapeEvery  = 15 * time.Second
)

// hour watches the shipped program at its own pace, on this host as it is: with the
// manifest's configuration, peers and scrapes.
func (s *stage) hour(ctx context.Context, f *figures) error {
	f.Mode = "Real " + strings.TrimSuffix(s.options.real.String(), "0m0s")
	program, err := s.program(ctx)
	if err != nil {
		return err
	}
	config, err := s.agentManifest.WriteConfig(s.folder)
	if err != nil {
		return err
	}
	if err := s.startPeers(program, config); err != nil {
		return err
	}
	as, err := bed.IdentityOn(ctx, s.cluster, watchedNode)
	if err != nil {
		return err
	}
	a, err := s.run(start{
		program: program, node: watchedNode, as: as, config: config,
		listen: fmt.Sprintf(":%d", s.ports[0]), hostIP: s.hostIP.String(),
	})
	if err != nil {
		return err
	}
	a.address = fmt.Sprintf("%s:%d", s.hostIP, s.ports[0])
	if err := a.awaitReady(ctx); err != nil {
		return err
	}
	measure.Say("the agent is watched for %s, as process %d", s.options.real, a.process.PID())
	if err := f.watch(ctx, a, s.options.real); err != nil {
		return err
	}
	f.Taints, err = s.taints(ctx)
	return err
}

// watch observes and scrapes the agent for that time.
func (f *figures) watch(ctx context.Context, a *agent, length time.Duration) error {
	begin := time.Now()
	scraper := newScraper(a.address)
	defer func() { f.Took, f.Work = time.Since(begin), scraper.work(length.Seconds()) }()
	if err := scraper.scrape(ctx); err != nil {
		return err
	}
	observes, scrapes, end := time.NewTicker(observeEvery), time.NewTicker(scrapeEvery), time.NewTimer(length)
	defer observes.Stop()
	defer scrapes.Stop()
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.process.Ended():
			f.Ended = fmt.Sprintf("it ended after %s: %v", time.Since(begin).Round(time.Second), a.process.Err())
			return nil
		case <-scrapes.C:
			if err := scraper.scrape(ctx); err != nil {
				measure.Say("a scrape was not answered: %v", err)
			}
		case now := <-observes.C:
			one, err := observe(a.process.PID())
			if err != nil {
				return err
			}
			one.At = now.Sub(begin).Seconds() / length.Seconds()
			f.Samples = append(f.Samples, scraper.complete(one))
		case <-end.C:
			return nil
		}
	}
}
