package main

import (
	"context"
	"sync"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/words"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// sampler takes samples of this host, without any API server.
type sampler struct {
	nodeName            string
	config              string
	host                probes.Host
	lifecycleController bool

	cfg    *config.Config
	probes []probes.Probe
	// reported are the conditions that others report, which have no probe of the host.
	reported []string
}

func (s *sampler) add(flags *pflag.FlagSet) {
	command.AddConfig(flags, &s.config)
	addNodeName(flags, &s.nodeName)
	addHost(flags, &s.host)
	command.AddLifecycleController(flags, &s.lifecycleController)
}

// load reads the configuration and makes the probes.
func (s *sampler) load() (err error) {
	if s.cfg, err = command.LoadConfig(s.config); err != nil {
		return err
	}
	newProbe := hostprobes.NewProbe(s.host)
	for _, condition := range s.cfg.Conditions {
		if _, isReported := condition.Section.(*config.Reported); isReported {
			s.reported = append(s.reported, string(condition.Name))
			continue
		}
		s.probes = append(s.probes, newProbe(condition))
	}
	return nil
}

// observe asks all probes at the same time, so that a probe that hangs delays no
// other beyond its own deadline.
func (s *sampler) observe(ctx context.Context) []probes.Observation {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	observations := make([]probes.Observation, len(s.probes))
	var group sync.WaitGroup
	for i, probe := range s.probes {
		group.Go(func() { observations[i] = hostprobes.Observe(ctx, probe) })
	}
	group.Wait()
	return observations
}

// sample asks all probes, and adds what the rules ask for.
func (s *sampler) sample(ctx context.Context) report {
	observations := s.observe(ctx)
	r := report{APIVersion: config.APIVersion, Kind: "HostReport", Node: s.nodeName, Eviction: words.Eviction(s.cfg), Reported: s.reported}
	for i, observation := range observations {
		r.Conditions = append(r.Conditions, s.ask(observation, s.probes[i].WakeMode()))
	}
	return r
}

// ask adds what the rules ask for at the level that was seen. Whether the admission policy is there is not known without an API server: via is that of
// a complete installation.
func (s *sampler) ask(observation probes.Observation, wake probes.WakeMode) condition {
	c := condition{Observation: observation, Wake: wake}
	for _, rule := range s.cfg.Policy().RulesFor(observation) {
		via, pair := taints.Resolve(rule.Taint.Pair(), words.Complete(s.cfg, s.lifecycleController))
		a := asked{Taint: pair.With(rule.Taint.Value).String(), Via: via}
		if via == taints.Kept {
			a.StandIn = taints.StandInFor(pair, s.cfg.StandInPrefix).With(rule.Taint.Value).String()
		}
		c.Taints = append(c.Taints, a)
	}
	return c
}
