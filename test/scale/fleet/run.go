package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// settle is how long after something the next thing begins.
	settle = 10 * time.Second
	// observed is how long an incident is observed.
	observed = 60 * time.Second
	// patience is how long an end is waited for that must come.
	patience = 5 * time.Minute
	// slowest is how long a roll-out of a configuration may take: maxJitter of
	// package agent, and some.
	slowest = 6 * time.Minute
)

// run measures everything in its order.
type run struct {
	*stage
	f *figures
	// later are done when the audit log has been read.
	later []func(log)
}

func (r *run) all(ctx context.Context) error {
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"the cluster alone, and with bare watches", r.baseline},
		{"agents start, and are idle", r.idle},
		{"taintlet status", r.status},
		{"a write with and without policies", r.admission},
		{"an incident with the fleet brake", func(ctx context.Context) error { return r.incident(ctx, "brake on, agents long started", false) }},
		{"a configuration is rolled out", r.rollOut},
		{"an incident without the fleet brake", func(ctx context.Context) error { return r.incident(ctx, "brake off", true) }},
		{"the brake is rolled out again, and an incident follows", r.cautious},
		{"the API server restarts", r.outage},
	} {
		say("%s", part.name)
		if err := part.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if err := pause(ctx, settle); err != nil { // the audit log is written
		return err
	}
	l, err := r.readLog()
	if err != nil {
		return err
	}
	for _, evaluate := range r.later {
		evaluate(l)
	}
	return nil
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}

// baseline measures the cluster without agents.
func (r *run) baseline(ctx context.Context) (err error) {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	quiet := func() error { return pause(ctx, r.options.base) }
	if r.f.Base, err = r.during(ctx, quiet); err != nil {
		return err
	}
	w, err := startChild(watchesKind, r.folder, r.setup)
	if err != nil {
		return err
	}
	if err := w.tell(command{Op: "start"}, nil); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if r.f.Watches, err = r.during(ctx, quiet); err != nil {
		return err
	}
	return w.end()
}

// idle starts the agents and measures what they do while nothing happens.
func (r *run) idle(ctx context.Context) (err error) {
	if r.agents, err = startChild(agentsKind, r.folder, r.setup); err != nil {
		return err
	}
	if err := r.agents.tell(command{Op: "start", Over: r.options.ramp, Count: len(r.nodes)}, nil); err != nil {
		return err
	}
	if err := pause(ctx, 3*settle); err != nil {
		return err
	}
	before, err := r.report()
	if err != nil {
		return err
	}
	w := window{From: time.Now()}
	if r.f.Idle, err = r.during(ctx, func() error { return pause(ctx, r.options.idle) }); err != nil {
		return err
	}
	w.To = w.From.Add(time.Duration(r.f.Idle.Seconds * float64(time.Second)))
	after, err := r.report()
	if err != nil {
		return err
	}
	q := &r.f.Quiet
	perHour := float64(len(r.nodes)) * w.hours()
	q.Seconds, q.Sent, q.Received = w.To.Sub(w.From).Seconds(), float64(after.Sent-before.Sent)/perHour, float64(after.Received-before.Received)/perHour
	q.TooMany = int(after.TooMany - before.TooMany)
	if q.Foreign, q.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(agentUser, w)
		q.PerHour, q.Heartbeats = map[string]float64{}, own.heartbeats()
		for kind, count := range own.byKind() {
			q.PerHour[kind] = float64(count) / perHour
		}
	})
	return nil
}

// others says how those fared within a window who have nothing to do with
// taintlet.
func (r *run) others(w window) (f latency, l leaseReport, err error) {
	err = r.foreign.tell(command{Op: "report", From: w.From, To: w.To}, &f)
	return f, r.kubelets.report(w.From, w.To), err
}

// incident makes the memory of all hosts bad at the same moment, and well again.
func (r *run) incident(ctx context.Context, name string, all bool) error {
	n := len(r.nodes)
	in := incident{Name: name}
	before, err := r.report()
	if err != nil {
		return err
	}
	metrics, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	w := window{From: time.Now()}
	in.Cost, err = r.during(ctx, func() error {
		if err := r.level("Degraded", 0, n); err != nil {
			return err
		}
		return pause(ctx, observed)
	})
	if err != nil {
		return err
	}
	w.To = w.From.Add(observed)
	var last time.Time
	in.Tainted, last, _ = r.view.now()
	if in.Tainted > 0 {
		in.Last = last.Sub(w.From)
	}
	after, err := r.report()
	if err != nil {
		return err
	}
	in.Sent, in.Received = after.Sent-before.Sent, after.Received-before.Received
	if in.Foreign, in.Leases, err = r.others(w); err != nil {
		return err
	}
	if all {
		metricsAfter, err := r.metrics(ctx)
		if err != nil {
			return err
		}
		for policy, mean := range evaluations(metrics, metricsAfter) {
			r.f.Admission["policy "+policy+", mean of its evaluations in the incident"] = mean
		}
		if err := r.whileHeld(ctx); err != nil {
			return err
		}
	}
	well := time.Now()
	if err := r.level("OK", 0, n); err != nil {
		return err
	}
	if err := r.view.until(ctx, 0, patience); err != nil {
		return err
	}
	in.Cleared = time.Since(well)
	at := len(r.f.Incidents)
	r.f.Incidents = append(r.f.Incidents, in)
	r.later = append(r.later, func(l log) {
		own, in := l.of(agentUser, w), &r.f.Incidents[at]
		in.Requests, in.Peak, in.Events = len(own), own.peak(), len(own.only("create", "events"))
		in.TooMany, in.Failed = own.refused()
	})
	return pause(ctx, settle)
}

// whileHeld measures the controller while all Nodes are held, restarts all agents,
// and measures again with half of the Nodes.
func (r *run) whileHeld(ctx context.Context) error {
	n := len(r.nodes)
	if err := r.status(ctx); err != nil {
		return err
	}
	if err := r.heldNow(ctx); err != nil {
		return err
	}
	if err := r.restartAll(ctx); err != nil {
		return err
	}
	if err := r.level("OK", 0, n/2); err != nil {
		return err
	}
	if err := r.view.until(ctx, n-n/2, patience); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	return r.heldNow(ctx)
}

// heldNow measures the controller while as many Nodes are held as now are.
func (r *run) heldNow(ctx context.Context) error {
	var h held
	h.Nodes, _, _ = r.view.now()
	w := window{From: time.Now()}
	c, err := r.during(ctx, func() error { return pause(ctx, observed) })
	if err != nil {
		return err
	}
	w.To = w.From.Add(observed)
	h.Seconds, h.Cores, h.APIServer = c.Seconds, c.Cores[cluster.ControllerManager], c.Cores[cluster.APIServer]
	at := len(r.f.Held)
	r.f.Held = append(r.f.Held, h)
	r.later = append(r.later, func(l log) {
		r.f.Held[at].Patches = float64(len(l.of(controllerUser, w).only("patch", "nodes"))) / observed.Minutes()
	})
	return nil
}

// restartAll restarts all agents, a tenth at a time.
func (r *run) restartAll(ctx context.Context) (err error) {
	s := &r.f.Restart
	var changes int
	s.Held, _, changes = r.view.now()
	w := window{From: time.Now()}
	if err := r.agents.tell(command{Op: "restart", Over: r.options.restart, Count: len(r.nodes)}, nil); err != nil {
		return err
	}
	s.Took = time.Since(w.From)
	if err := pause(ctx, 2*settle); err != nil {
		return err
	}
	w.To = time.Now()
	_, _, after := r.view.now()
	s.TaintChanges = after - changes
	if s.Foreign, s.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(agentUser, w)
		s.Requests, s.Peak = len(own), own.peak()
		again := own.sinceWatch()
		s.MostWrites, s.MostStatus = most(again.only("patch", "nodes")), most(again.only("patch", "nodes/status"))
		s.TooMany, _ = own.refused()
		s.PerAgent = r.perAgent(own)
	})
	return nil
}

func most(l log) int {
	most := 0
	for _, count := range l.byNode() {
		most = max(most, count)
	}
	return most
}

// perAgent is how many requests of each kind an agent made, on average.
func (r *run) perAgent(l log) map[string]float64 {
	all := map[string]float64{}
	for kind, count := range l.byKind() {
		all[kind] = float64(count) / float64(len(r.nodes))
	}
	return all
}

// rollOut gives all agents a configuration without the fleet brake.
func (r *run) rollOut(ctx context.Context) error {
	w, err := r.reconfigure(ctx, 0)
	if err != nil {
		return err
	}
	o := &r.f.Rollout
	o.InForce = w.To.Sub(w.From)
	if o.Foreign, o.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(agentUser, w)
		o.Requests, o.Peak, o.PerAgent = len(own), own.peak(), float64(len(own))/float64(len(r.nodes))
	})
	return pause(ctx, settle)
}

// reconfigure changes the configuration and waits until it is in force on all.
func (r *run) reconfigure(ctx context.Context, brake int) (window, error) {
	const inForce = "configuration in force"
	before, err := r.report()
	if err != nil {
		return window{}, err
	}
	w := window{From: time.Now()}
	if err := r.configure(brake); err != nil {
		return w, err
	}
	err = eventually(ctx, slowest, func() error {
		now, err := r.report()
		if done := now.Log[inForce] - before.Log[inForce]; err == nil && done < len(r.nodes) {
			err = fmt.Errorf("it is in force on %d nodes", done)
		}
		return err
	})
	w.To = time.Now()
	return w, err
}

// cautious gives all agents the fleet brake again, and makes all hosts bad while it
// is cautious.
func (r *run) cautious(ctx context.Context) error {
	if _, err := r.reconfigure(ctx, r.options.brake); err != nil {
		return err
	}
	return r.incident(ctx, "brake on, just rolled out", false)
}

// outage kills the API server and starts it again.
func (r *run) outage(ctx context.Context) (err error) {
	o := &r.f.Outage
	_, _, changes := r.view.now()
	w := window{From: time.Now()}
	if err := r.cluster.RestartAPIServer(ctx); err != nil {
		return err
	}
	o.Down = time.Since(w.From)
	if err := pause(ctx, 2*observed); err != nil {
		return err
	}
	w.To = time.Now()
	_, _, after := r.view.now()
	o.TaintChanges = after - changes
	if o.Foreign, o.Leases, err = r.others(w); err != nil {
		return err
	}
	r.later = append(r.later, func(l log) {
		own := l.of(agentUser, w)
		o.Requests, o.Peak, o.PerAgent = len(own), own.peak(), r.perAgent(own)
		o.TooMany, _ = own.refused()
		back := map[string]time.Time{}
		for _, request := range own.only("watch", "nodes") {
			if _, known := back[nodeOf(request)]; !known {
				back[nodeOf(request)] = request.RequestReceivedTimestamp
				o.Back = request.RequestReceivedTimestamp.Sub(w.From)
			}
		}
		if len(back) < len(r.nodes) {
			o.Back = -1
		}
	})
	return nil
}

// status runs taintlet status over all Nodes.
func (r *run) status(ctx context.Context) error {
	kubeconfig := filepath.Join(r.folder, "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, r.cluster.Admin()); err != nil {
		return err
	}
	tainted, _, _ := r.view.now()
	for _, output := range []string{"table", "json"} {
		var out, complaint bytes.Buffer
		command := exec.CommandContext(ctx, r.program, "status", "--output="+output, "--kubeconfig="+kubeconfig) //nolint:gosec // our own binary
		command.Stdout, command.Stderr = &out, &complaint
		begin := time.Now()
		err := command.Run()
		s := status{Args: fmt.Sprintf("--output=%s, %d tainted", output, tainted), Took: time.Since(begin), Lines: strings.Count(out.String(), "\n")}
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) {
			return fmt.Errorf("taintlet status: %w: %s", err, complaint.String())
		}
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			s.RSS = float64(usage.Maxrss) / 1024
		}
		r.f.Status = append(r.f.Status, s)
	}
	return nil
}
