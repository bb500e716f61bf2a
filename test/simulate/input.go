package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// forever is later than any end.
const forever = time.Duration(math.MaxInt64)

// input is what a simulated host goes through.
type input struct {
	name     string
	duration time.Duration
	// sources has the conditions that the input is about. The others are OK.
	sources map[probes.Condition]source
}

// source is the input of one condition.
type source interface {
	// at returns the sample at a time, and until when it holds unless one of
	// the answers changes before. Times never go back.
	at(now time.Duration, held answers) (sample, time.Duration)
}

// answers say which of the rules have tainted the Node.
type answers struct{ taintlet, kubelet bool }

// sample is what a probe finds at a time.
type sample struct {
	level               probes.Level
	certain, hysteresis bool
}

func (s sample) bad() bool { return isBad(int(s.level)) }

func isBad(level int) bool { return level > int(probes.OK) }

// constant is always the same.
type constant struct{ sample sample }

func (c constant) at(time.Duration, answers) (sample, time.Duration) { return c.sample, forever }

func fine() sample { return sample{level: probes.OK} }

func parseCondition(name string) (probes.Condition, error) {
	var known []string
	for _, c := range config.HostSchema() {
		if string(c.Name) == name {
			return c.Name, nil
		}
		known = append(known, string(c.Name))
	}
	return "", fmt.Errorf("%q: must be one of %s", name, strings.Join(known, ", "))
}
