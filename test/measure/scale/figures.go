package main

import (
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// figures are what one run measured. They are kept as JSON, so that runs of other
// sizes can be compared.
type figures struct {
	measure.Origin
	Nodes int
	// Stopped says where the run ended before its end, and why.
	Stopped string
	// Base, Watches and Idle are the cost of the cluster with Nodes alone, with a
	// bare watch of each, and with an agent on each.
	Base, Watches, Idle cost
	Quiet               idle
	Incidents           []incident
	Rollout             rollout
	Held                []held
	Restart             restart
	Outage              outage
	Status              []status
	// Handshake is what a TLS connection costs the API server, in ms of CPU.
	Handshake float64
	// Admission is how long writes and policies took, in ms.
	Admission map[string]float64
}

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

// incident is a mass incident: the memory of all hosts is bad at the same moment.
type incident struct {
	Name string
	// Tainted Nodes, and when the last of them was.
	Tainted  int
	Last     time.Duration
	Requests int
	Peak     int // a second
	// TooMany and Failed are answers to the agents.
	TooMany, Failed int
	Sent, Received  int64
	Foreign         latency
	Leases          leaseReport
	// Cleared is when the last taint had gone, after all hosts were well again.
	Cleared time.Duration
	Cost    cost
	// PerAgent are requests by verb and resource, on average.
	PerAgent map[string]float64
}

// rollout is what a new configuration causes.
type rollout struct {
	InForce  time.Duration // on all
	Requests int
	Peak     int
	PerAgent float64
	Leases   leaseReport
	Foreign  latency
}

// held is what the node-lifecycle-controller does while taintlet holds pairs of its
// own on so many Nodes.
type held struct {
	Nodes   int
	Seconds float64
	// Patches of the controller, a minute, and the cores that its process uses.
	Patches, Cores float64
	APIServer      float64 // cores
}

// restart is a rolling restart of all agents.
type restart struct {
	Took time.Duration
	// Held are the Nodes that were tainted meanwhile.
	Held, TaintChanges int
	// MostWrites is the most patches of its Node that one agent made, MostStatus
	// those of its status that were no heartbeat, MostInAll both together.
	MostWrites, MostStatus, MostInAll int
	Requests, Peak                    int // of all
	PerAgent                          map[string]float64
	TooMany                           int
	Foreign                           latency
	Leases                            leaseReport
}

// outage is a crash of the API server.
type outage struct {
	Down         time.Duration // until the API server was ready
	Back         time.Duration // until every agent watched again, from its start
	TaintChanges int
	Requests     int
	Peak         int
	TooMany      int
	PerAgent     map[string]float64
	Foreign      latency
	Leases       leaseReport
}

// status is a run of kubectl taintlet status over all Nodes.
type status struct {
	Args  string
	Took  time.Duration
	RSS   float64 // MiB, at most
	Lines int
}
