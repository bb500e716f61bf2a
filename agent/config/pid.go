package config

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pid"
)

// PID is the section of PIDPressure.
type PID struct {
	Sampling

	// UsedPercent and FreeTasks: Degraded when this share of the host's task
	// limit is used, or when fewer tasks than FreeTasks are left.
	UsedPercent float64 `json:"usedPercent"`
	FreeTasks   uint64  `json:"freeTasks"`
	// CriticalUsedPercent: a sample is critical when this share is used. 0:
	// never.
	CriticalUsedPercent float64 `json:"criticalUsedPercent"`
	// RunningOutWithin (0 to 10m, 0: never): Degraded if, at the current rate, no
	// task is left within this time and RunningOutUsedPercent is used.
	RunningOutWithin      decide.Duration `json:"runningOutWithin"`
	RunningOutUsedPercent float64         `json:"runningOutUsedPercent"`
	// ClearFactor (1 to 10): a sample is good again only above ClearFactor times
	// the share that must be free.
	ClearFactor float64 `json:"clearFactor"`
}

func defaultPID() Section {
	return &PID{
		Sampling:    DefaultSampling(4*time.Second, 2, 3),
		UsedPercent: 85,
		FreeTasks:   1000,

		CriticalUsedPercent:   95,
		RunningOutWithin:      seconds(30),
		RunningOutUsedPercent: 50,

		ClearFactor: 1.5,
	}
}

// Thresholds returns what the probe judges by.
func (p *PID) Thresholds() pid.Thresholds {
	return pid.Thresholds{
		UsedPercent:           p.UsedPercent,
		FreeTasks:             p.FreeTasks,
		CriticalUsedPercent:   p.CriticalUsedPercent,
		RunningOutWithin:      p.RunningOutWithin.Duration,
		RunningOutUsedPercent: p.RunningOutUsedPercent,
		ClearFactor:           p.ClearFactor,
	}
}

// Rejudge judges a recorded sample by these thresholds.
func (p *PID) Rejudge(_ probes.Observation, quantities []probes.Measure) (probes.Observation, bool) {
	return p.Thresholds().Rejudge(quantities)
}

// Validate returns every impossible value.
func (p *PID) Validate(at *field.Path) field.ErrorList {
	errs := percent(p.UsedPercent, at.Child("usedPercent"))
	errs = append(errs, percent(p.CriticalUsedPercent, at.Child("criticalUsedPercent"))...)
	errs = append(errs, between(p.RunningOutWithin, 0, maxForecast, at.Child("runningOutWithin"))...)
	errs = append(errs, percent(p.RunningOutUsedPercent, at.Child("runningOutUsedPercent"))...)
	return append(errs, clearFactor(p.ClearFactor, at.Child("clearFactor"), 100-p.UsedPercent)...)
}
