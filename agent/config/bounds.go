package config

import (
	"fmt"
	"path"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
)

// Bounds of what makes sense. They keep a typing error from turning the
// agent into a busy loop, or into an agent that never takes a sample.
const (
	maxPeriod     = 10 * time.Minute
	maxClearAfter = 24 * time.Hour
	minHeartbeat  = time.Minute
	// maxHeartbeat leaves taintlet cleanup stale, which waits for a day, two to miss.
	maxHeartbeat = 8 * time.Hour
	maxSlowWrite = 4 * time.Second // a sample, and so the wait for a write, ends after 5 s
	maxSamples   = 32
	maxPaths     = 32
	maxPath      = 4096 // PATH_MAX
	maxFactor    = 10
	// maxKeys is the total length of all keys of the rules. It keeps the
	// record, which names each owned pair, within its 4 KiB.
	maxKeys = 1500
)

func between(d decide.Duration, low, high time.Duration, at *field.Path) field.ErrorList {
	if d.Duration < low || d.Duration > high {
		return field.ErrorList{field.Invalid(at, d.String(), "must be "+low.String()+" to "+high.String())}
	}
	return nil
}

func absolute(p string, at *field.Path) field.ErrorList {
	if !path.IsAbs(p) || path.Clean(p) != p || len(p) > maxPath {
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path without . and .. and trailing /, of at most "+strconv.Itoa(maxPath)+" bytes")}
	}
	return nil
}

// amount checks a number of bytes. More than an exbibyte would not fit the sums
// that are made of it.
func amount(q resource.Quantity, at *field.Path) field.ErrorList {
	if q.Sign() < 0 || q.Cmp(resource.MustParse("1Ei")) > 0 {
		return field.ErrorList{field.Invalid(at, q.String(), "must be 0 to 1Ei")}
	}
	return nil
}

func percent(value float64, at *field.Path) field.ErrorList {
	if !(value >= 0 && value <= 100) {
		return field.ErrorList{field.Invalid(at, value, "must be 0 to 100 percent")}
	}
	return nil
}

// clearFactor checks the factor, and that the threshold it makes can be reached
// at all. setPercent is the share that must be free.
func clearFactor(value float64, at *field.Path, setPercent float64) field.ErrorList {
	if !(value >= 1 && value <= maxFactor) {
		return field.ErrorList{field.Invalid(at, value, "must be 1 to 10")}
	}
	if value*setPercent > 100 {
		return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("the condition could never clear: %g times a threshold of %g %% free is over 100 %%", value, setPercent))}
	}
	return nil
}

// controlPlanePrefixes are those of all reserved and all reconciled keys: a
// stand-in must not be one of them.
func controlPlanePrefixes() []string {
	return []string{"node.kubernetes.io", "node.cloudprovider.kubernetes.io"}
}
