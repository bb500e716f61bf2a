package main

import (
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

func TestTheAgentAcceptsItsConfiguration(t *testing.T) {
	s := &stage{
		memory: memoryPlan{agent: 20 << 30},
		tasks:  tasksPlan{limit: 32768, leastFit: 31639},
	}
	if _, err := config.HostSchema().Decode([]byte(s.configuration())); err != nil {
		t.Error(err)
	}
}
