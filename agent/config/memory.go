package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/probes/memory"
)

// Memory is the section of MemoryPressure. 0 in a threshold means that there is
// no such threshold.
type Memory struct {
	Sampling

	// AvailablePercent (0 to 100, of all memory but huge pages) and
	// AvailableBytes: Degraded when available memory is below the larger of the
	// two.
	AvailablePercent float64           `json:"availablePercent"`
	AvailableBytes   resource.Quantity `json:"availableBytes"`
	// StalledPercent: Degraded when tasks waited for memory for this share of
	// the last 2 s, as far as the host reclaimed memory, and less than
	// StalledAvailablePercent is available.
	StalledPercent          float64 `json:"stalledPercent"`
	StalledAvailablePercent float64 `json:"stalledAvailablePercent"`
	// CriticalStalledPercent: a sample is critical when all tasks waited for this
	// share of the last 10 s and available memory is below the first threshold.
	CriticalStalledPercent float64 `json:"criticalStalledPercent"`
	// ClearFactor (1 to 10): a sample is good again only above ClearFactor times
	// the threshold.
	ClearFactor float64 `json:"clearFactor"`
}

// defaultMemory has the kubelet's memory.available as its floor.
func defaultMemory() Section {
	return &Memory{
		Sampling:         DefaultSampling(4*time.Second, 2, 3),
		AvailablePercent: 5,
		AvailableBytes:   resource.MustParse("100Mi"),

		StalledPercent:          15,
		StalledAvailablePercent: 15,
		CriticalStalledPercent:  40,

		ClearFactor: 1.5,
	}
}

// Thresholds returns what the probe judges by.
func (m *Memory) Thresholds() memory.Thresholds {
	return memory.Thresholds{
		AvailablePercent:        m.AvailablePercent,
		AvailableBytes:          byteCount(m.AvailableBytes),
		StalledPercent:          m.StalledPercent,
		StalledAvailablePercent: m.StalledAvailablePercent,
		CriticalStalledPercent:  m.CriticalStalledPercent,
		ClearFactor:             m.ClearFactor,
	}
}

func byteCount(q resource.Quantity) uint64 { return uint64(max(0, q.Value())) }

// Validate returns every impossible value.
func (m *Memory) Validate(at *field.Path) field.ErrorList {
	errs := percent(m.AvailablePercent, at.Child("availablePercent"))
	errs = append(errs, amount(m.AvailableBytes, at.Child("availableBytes"))...)
	errs = append(errs, percent(m.StalledPercent, at.Child("stalledPercent"))...)
	errs = append(errs, percent(m.StalledAvailablePercent, at.Child("stalledAvailablePercent"))...)
	errs = append(errs, percent(m.CriticalStalledPercent, at.Child("criticalStalledPercent"))...)
	return append(errs, clearFactor(m.ClearFactor, at.Child("clearFactor"), m.AvailablePercent)...)
}
