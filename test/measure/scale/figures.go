// Package scale measures what thousands of agents cost one API server. The agents
// are all real but for their probes, which find what they are told to: API server,
// controllers and scheduler are real as well, and Nodes are kept alive as by
// kubelets. TestScale runs it, by make scale.
package scale

import (
	"fmt"
	"slices"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// figures are what one run measured. They are kept as JSON, so that runs of other
// sizes can be compared.
type figures struct {
	measure.Origin
	file  string // in which they were found, without its extension
	Nodes int
	// Partial says what a full run has and this one has not; empty: it is a full run.
	Partial string
	// Parts are those that were measured to their end.
	Parts []string
	// Stopped says where the run ended before its end, and why.
	Stopped string
	// CPUs is how many processors the machine has.
	CPUs int
	// Cores is how many of them etcd and the API server may use together; 0: all.
	Cores float64
	// Base, Watches and Idle are the cost of the cluster with Nodes alone, with a
	// bare watch of each, and with an agent on each.
	Base, Watches, Idle cost
	Start               spell
	Quiet               idle
	Incidents           []*incident
	Rollout             rollout
	Held                []*held
	Restart             restart
	Slices              rewritten
	Outage              outage
	Status              []status
	// Handshake is what a TLS connection costs the API server, in ms of CPU.
	Handshake float64
	// Admission is how long writes and policies took, in ms.
	Admission map[string]float64
}

// isFull reports whether a run measured all that there was to measure.
func (f *figures) isFull() bool { return f.Partial == "" && f.Stopped == "" }

// idle is what the agents did while nothing happened.
type idle struct {
	Seconds float64
	// PerHour is by verb and resource, for each node.
	PerHour map[string]float64
	// Heartbeats an hour, by the time between two of one Node.
	Heartbeats float64
	// Sent and Received are bytes of bodies, for each node and hour.
	Sent, Received float64
	TooMany        int
	Foreign        latency
	Leases         leaseReport
}

// incident is a mass incident: the memory of many hosts is bad at the same moment.
type incident struct {
	Name string
	// Bad Nodes; 0, in older results: all.
	Bad int
	// Tainted Nodes, and when the last of them was.
	Tainted int
	Last    time.Duration
	// Sent and Received are bytes of bodies.
	Sent, Received int64
	// Cleared is when the last taint had gone, after all hosts were well again.
	Cleared time.Duration
	spell
}

// rollout is what a new configuration causes.
type rollout struct {
	InForce time.Duration // on all
	// PerAgent is how many requests an agent made. It hides the counts by kind.
	PerAgent float64
	spell
}

// held is what the node-lifecycle-controller does while taintlet holds pairs of its
// own on so many Nodes.
type held struct {
	Nodes   int
	Seconds float64
	// Patches of the controller, a minute, and the cores that its process uses.
	Patches, Cores float64
	APIServer      float64 // cores
	// Policy is how long the keep policy took for each write of the controller, and Timed
	// for each write that was made to be timed, both on average and by the API server's
	// metrics. WithPolicy and WithoutPolicy are medians of whole writes. All are in ms.
	Policy, Timed, WithPolicy, WithoutPolicy float64
	Cost                                     cost
}

// restart is a rolling restart of all agents.
type restart struct {
	Took time.Duration
	// Held are the Nodes that were tainted meanwhile.
	Held int
	// MostWrites is the most patches of its Node that one agent made, MostStatus
	// those of its status that were no heartbeat, MostInAll both together.
	MostWrites, MostStatus, MostInAll int
	// SliceWrites are those of the agents' EndpointSlices.
	SliceWrites int
	spell
}

// rewritten is what follows when all EndpointSlices of the agents have changed.
type rewritten struct {
	Writes int
	spell
}

// outage is a crash of the API server.
type outage struct {
	Down time.Duration // until the API server was ready
	Back time.Duration // until every agent watched again, from its start
	spell
}

// status is a run of kubectl taintlet status over all Nodes.
type status struct {
	Args  string
	Took  time.Duration
	RSS   float64 // MiB, at most
	Lines int
}

// phase is a named part of a run of which it is known what the processes used.
type phase struct {
	name string
	cost cost
}

// phases are those of a run, in their order.
func (f *figures) phases() []phase {
	all := []phase{{"nodes alone", f.Base}, {"bare watches", f.Watches}, {"agents start", f.Start.Cost}, {"idle", f.Idle}}
	for _, in := range f.Incidents {
		all = append(all, phase{"incident, " + in.Name, in.Cost})
	}
	for _, h := range f.Held {
		all = append(all, phase{fmt.Sprintf("%d held", h.Nodes), h.Cost})
	}
	all = append(all, phase{"configuration rolled out", f.Rollout.Cost}, phase{"rolling restart", f.Restart.Cost},
		phase{"EndpointSlices rewritten", f.Slices.Cost}, phase{"crash of the API server", f.Outage.Cost})
	return slices.DeleteFunc(all, func(p phase) bool { return p.cost.Seconds == 0 })
}

// cost is what each process used within some time.
type cost struct {
	Seconds float64
	// Cores that each process used, and its RSS in MiB at the end.
	Cores, RSS map[string]float64
	// Live is the API server's heap after a collection, with its stacks, in MiB;
	// Goroutines are its own.
	Live, Goroutines float64
	// Late is how late the timers of this program's own processes were.
	Late map[string]latency
}

// Names of this program's own processes in a cost.
const (
	harnessName  = "harness"
	agentsName   = "hollow agents"
	foreignName  = "foreign client"
	kubeletsName = "kubelets"
	// othersName stands for all other programs of the machine.
	othersName = "other programs"
)

// own are the processes that measure and that keep the Nodes alive. The agents are what is
// measured.
func own() []string { return []string{harnessName, kubeletsName, foreignName} }

// ownCores are those of this program's own work.
func (c cost) ownCores() float64 {
	sum := 0.0
	for _, name := range own() {
		sum += c.Cores[name]
	}
	return sum
}

// spell is what the agents did within some time, and how those fared meanwhile who have
// nothing to do with taintlet.
type spell struct {
	Seconds                         float64
	Requests, Peak, TooMany, Failed int // of and to the agents; the peak is of one second
	PerAgent                        map[string]float64
	Foreign                         latency
	Leases                          leaseReport
	TaintChanges                    int
	Cost                            cost
}

// brakeOff names the mass incident of all nodes without the fleet brake.
const brakeOff = "brake off"
