package config

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Network is the section of NetworkUnavailable.
type Network struct {
	Sampling

	// DisabledClasses are kinds of checks that are not made.
	DisabledClasses []verdict.Class `json:"disabledClasses"`
}

func defaultNetwork() Section {
	return &Network{Sampling: DefaultSampling(5*time.Second, 3, 5), DisabledClasses: []verdict.Class{}}
}

// networkFaults are the reasons of a host that is cut off, or whose own part of the network
// fails, as its peers prove.
func networkFaults() []string {
	return []string{"RouteLost", "ConntrackDrops", "PodsUnreachable", "DNSUnreachable", "NodeDaemonFails", "LargePacketsLost", "CutOff"}
}

// MinInterval is 1 s: whoever sends a burst of probes would be a part of the
// trouble.
func (*Network) MinInterval() time.Duration { return time.Second }

// FollowUp is 1 s, for the same reason.
func (*Network) FollowUp() time.Duration { return time.Second }

// Validate returns every impossible value.
func (n *Network) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	classes := verdict.Classes()
	if len(n.DisabledClasses) > len(classes) {
		return field.ErrorList{field.TooMany(at.Child("disabledClasses"), len(n.DisabledClasses), len(classes))}
	}
	for i, class := range n.DisabledClasses {
		at := at.Child("disabledClasses").Index(i)
		if !slices.Contains(classes, class) {
			errs = append(errs, field.NotSupported(at, class, classes))
		}
		if slices.Contains(n.DisabledClasses[:i], class) {
			errs = append(errs, field.Duplicate(at, class))
		}
	}
	return errs
}
