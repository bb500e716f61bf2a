package config

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/probes/pid"
)

// PID is the section of PIDPressure.
type PID struct {
	Sampling

	// UsedPercent: Degraded when this share of the host's task limit is used, or
	// when few tasks are left.
	UsedPercent float64 `json:"usedPercent"`
	// CriticalUsedPercent: a sample is critical when this share is used. 0:
	// never.
	CriticalUsedPercent float64 `json:"criticalUsedPercent"`
	// ClearFactor (1 to 10): a sample is good again only above ClearFactor times
	// the share that must be free.
	ClearFactor float64 `json:"clearFactor"`
}

func defaultPID() Section {
	return &PID{
		Sampling:            DefaultSampling(4*time.Second, 2, 3),
		UsedPercent:         85,
		CriticalUsedPercent: 95,
		ClearFactor:         1.5,
	}
}

// Thresholds returns what the probe judges by.
func (p *PID) Thresholds() pid.Thresholds {
	return pid.Thresholds{
		UsedPercent:         p.UsedPercent,
		CriticalUsedPercent: p.CriticalUsedPercent,
		ClearFactor:         p.ClearFactor,
	}
}

// Validate returns every impossible value.
func (p *PID) Validate(at *field.Path) field.ErrorList {
	errs := percent(p.UsedPercent, at.Child("usedPercent"))
	errs = append(errs, percent(p.CriticalUsedPercent, at.Child("criticalUsedPercent"))...)
	return append(errs, clearFactor(p.ClearFactor, at.Child("clearFactor"), 100-p.UsedPercent)...)
}
