package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/taintlet/taintlet/test/bed"
	"os"
	"time"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

// settle is how long after its start a process is given before it counts as idle.
const settle = 30 * time.Second

// contender is a process that is measured, and who it is in the cluster.
type contender struct {
	name string
	pid  int
	user string // empty: it makes no requests
}

// measureIdle prints what the agent and the kubelet use while nothing happens.
func measureIdle(ctx context.Context, o *options) (err error) {
	s := &stage{}
	defer func() { err = errors.Join(err, s.tearDown()) }()
	if err := s.setUp(ctx, o); err != nil {
		return err
	}
	var configuration []byte
	if o.config != "" {
		if configuration, err = os.ReadFile(o.config); err != nil {
			return fmt.Errorf("read the agent's configuration: %w", err)
		}
	}
	a, err := s.startAgent(ctx, string(configuration))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Stop(graceful)) }()
	measure.Say("all are given %v to settle, then %v are measured", settle, o.idle)
	if err := process.Pause(ctx, settle); err != nil {
		return err
	}
	processes := s.kubelet.Processes()
	contenders := []contender{
		{"taintlet", a.PID(), bed.User},
		{"kubelet", processes["kubelet"], "system:node:" + nodeName},
		{"containerd", processes["containerd"], ""},
	}
	begin := time.Now()
	before, err := usages(contenders)
	if err != nil {
		return err
	}
	if err := process.Pause(ctx, o.idle); err != nil {
		return err
	}
	after, err := usages(contenders)
	if err != nil {
		return err
	}
	end := time.Now()
	requests, err := s.cluster.Requests("")
	if err != nil {
		return err
	}
	if err := checkRights(requests, bed.User); err != nil {
		return err
	}
	printIdle(contenders, before, after, countRequests(requests, begin, end), end.Sub(begin))
	return nil
}

func usages(contenders []contender) ([]process.Usage, error) {
	var all []process.Usage
	for _, c := range contenders {
		used, err := process.UsageOf(c.pid)
		if err != nil {
			return nil, fmt.Errorf("read what %s uses: %w", c.name, err)
		}
		all = append(all, used)
	}
	return all, nil
}

func printIdle(contenders []contender, before, after []process.Usage, asked map[string]int, took time.Duration) {
	fmt.Printf("\n## idle for %v\n\n", took.Round(time.Second))
	fmt.Println("| | CPU time | share of one CPU | VmRSS | RssAnon | requests |")
	fmt.Println("|---|---|---|---|---|---|")
	used := func(n int) time.Duration { return after[n].CPU - before[n].CPU }
	for i, c := range contenders {
		fmt.Printf("| %s | %s | %.3f %% | %.1f MiB | %.1f MiB | %s |\n", c.name, seconds(used(i)), 100*used(i).Seconds()/took.Seconds(),
			float64(after[i].RSS)/mebibyte, float64(after[i].Anonymous)/mebibyte, requestsText(c.user, asked))
	}
	fmt.Println()
	for i, c := range contenders[1:] {
		fmt.Printf("%s: %s times the CPU of taintlet, %.1f times the memory\n", c.name,
			ratio(used(i+1), used(0)), float64(after[i+1].RSS)/float64(after[0].RSS))
	}
}

func requestsText(user string, asked map[string]int) string {
	if user == "" {
		return "-"
	}
	return fmt.Sprint(asked[user])
}
