package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/process"
)

const (
	graceful = 10 * time.Second
)

// agent is an agent that runs.
type agent struct {
	process *process.Process
	address string // of its port, for this host
}

// start says in what agents differ.
type start struct {
	program, node string
	as            *rest.Config
	config        string // its file
	listen        string
	hostIP        string
	flags         []string
}

// run starts an agent with the environment of the chart and, where this program may
// choose, as its user. Its log is a file in the folder.
func (s *stage) run(o start) (*agent, error) {
	kubeconfig := filepath.Join(s.folder, o.node+".kubeconfig")
	if err := bed.WriteIdentity(kubeconfig, o.as); err != nil {
		return nil, err
	}
	args := append([]string{"--kubeconfig=" + kubeconfig, "--config=" + o.config, "--node-name=" + o.node, "--listen=" + o.listen}, o.flags...)
	command := bed.Unprivileged(o.program, args...)
	command.Env = append(os.Environ(), s.agentManifest.Env(o.node, o.hostIP)...)
	p, err := process.Start("the agent of "+o.node, command, filepath.Join(s.folder, o.node+".log"))
	if err != nil {
		return nil, err
	}
	a := &agent{process: p}
	s.agents = append(s.agents, a)
	return a, nil
}

// end ends the agent, if it has not ended.
func (a *agent) end() error {
	select {
	case <-a.process.Ended():
		return nil
	default:
		return a.process.Stop(graceful)
	}
}

// awaitReady waits until the agent may write its Node.
func (a *agent) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s := newScraper(a.address)
	return a.process.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, s.client, "http://"+a.address+"/readyz")
		return err
	})
}

// startPeers starts the peers, which are agents of this host too.
func (s *stage) startPeers(program, config string) error {
	for number := 1; number <= peers; number++ {
		if _, err := s.startPeer(program, config, number); err != nil {
			return err
		}
	}
	return nil
}

// startPeer starts a peer, by its number from 1.
func (s *stage) startPeer(program, config string, number int) (*agent, error) {
	as, err := s.cluster.Config(peerUser)
	if err != nil {
		return nil, err
	}
	return s.run(start{
		program: program, node: peerNode(number), as: as, config: config,
		listen: fmt.Sprintf(":%d", s.ports[number]), hostIP: s.hostIP.String(),
	})
}
