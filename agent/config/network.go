package config

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network"
)

// Network is the section of NetworkUnavailable.
type Network struct {
	Sampling
}

func defaultNetwork() Section {
	return &Network{Sampling: DefaultSampling(5*time.Second, 3, 5)}
}

// MinInterval is 1 s: whoever sends a burst of probes would be a part of the
// trouble.
func (*Network) MinInterval() time.Duration { return time.Second }

// FollowUp is 1 s, for the same reason.
func (*Network) FollowUp() time.Duration { return time.Second }

// NewProbe makes the probe of the host's network.
func (*Network) NewProbe(host probes.Host) probes.Probe { return network.New(host) }

// Validate returns every impossible value.
func (*Network) Validate(*field.Path) field.ErrorList { return nil }
