package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// settle is how long after its start a process is given before it counts as idle.
const settle = 30 * time.Second

// cost is what a process has used since it began, and holds now.
type cost struct {
	user, system float64 // seconds of CPU
	rss, anon    uint64  // bytes
}

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
	say("all are given %v to settle, then %v are measured", settle, o.idle)
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	processes := s.kubelet.Processes()
	contenders := []contender{
		{"taintlet", a.PID(), agentUser},
		{"kubelet", processes["kubelet"], "system:node:" + nodeName},
		{"containerd", processes["containerd"], ""},
	}
	begin := time.Now()
	before, err := costs(contenders)
	if err != nil {
		return err
	}
	if err := sleep(ctx, o.idle); err != nil {
		return err
	}
	after, err := costs(contenders)
	if err != nil {
		return err
	}
	end := time.Now()
	requests, err := s.cluster.Requests("")
	if err != nil {
		return err
	}
	printIdle(contenders, before, after, countRequests(requests, begin, end), end.Sub(begin))
	return nil
}

func costs(contenders []contender) ([]cost, error) {
	var all []cost
	for _, c := range contenders {
		used, err := costOf(c.pid)
		if err != nil {
			return nil, fmt.Errorf("read what %s uses: %w", c.name, err)
		}
		all = append(all, used)
	}
	return all, nil
}

func costOf(pid int) (cost, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return cost{}, err
	}
	stat, err := process.Stat()
	if err != nil {
		return cost{}, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return cost{}, err
	}
	const ticks = 100 // USER_HZ of Linux, in all its ports that matter
	return cost{
		user:   float64(stat.UTime) / ticks,
		system: float64(stat.STime) / ticks,
		rss:    status.VmRSS,
		anon:   status.RssAnon,
	}, nil
}

func printIdle(contenders []contender, before, after []cost, asked map[string]int, took time.Duration) {
	fmt.Printf("\n## idle for %v\n\n", took.Round(time.Second))
	fmt.Println("| | utime | stime | share of one CPU | VmRSS | RssAnon | requests |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for i, c := range contenders {
		user, system := after[i].user-before[i].user, after[i].system-before[i].system
		fmt.Printf("| %s | %.2f s | %.2f s | %.3f %% | %.1f MiB | %.1f MiB | %s |\n", c.name, user, system, 100*(user+system)/took.Seconds(),
			float64(after[i].rss)/mebibyte, float64(after[i].anon)/mebibyte, requestsText(c.user, asked))
	}
	fmt.Println()
	for i, c := range contenders[1:] {
		used := func(n int) float64 { return after[n].user - before[n].user + after[n].system - before[n].system }
		fmt.Printf("%s: %.1f times the CPU of taintlet, %.1f times the memory\n", c.name,
			used(i+1)/max(used(0), 0.01), float64(after[i+1].rss)/float64(after[0].rss))
	}
}

func requestsText(user string, asked map[string]int) string {
	if user == "" {
		return "-"
	}
	return fmt.Sprint(asked[user])
}
