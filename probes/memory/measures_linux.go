package memory

import (
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

var _ probes.Measurer = (*Probe)(nil)

// Measures appends what the newest sample showed of available memory, and, where
// they are known, of the limit of all pods, of stalls and of the time until nothing is left.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure {
	v, t := &p.newest, &p.thresholds
	if v.whole() == 0 { // the newest sample could not be read
		return all
	}
	factor := max(1, t.ClearFactor)
	enough := t.enough(v.whole())
	all = append(all,
		probes.Measure{Name: "available", Unit: probes.Bytes, Value: float64(v.available), Degraded: enough.bytes, Clear: enough.clear()},
		probes.Measure{Name: "total", Unit: probes.Bytes, Value: v.whole()})
	if pods := v.pods; pods.limit > 0 {
		floor := t.floor(float64(pods.limit))
		all = append(all,
			probes.Measure{Name: "allocatable_available", Unit: probes.Bytes, Value: float64(pods.available), Degraded: floor.bytes, Clear: floor.clear()},
			probes.Measure{Name: "allocatable", Unit: probes.Bytes, Value: float64(pods.limit)})
	}
	if v.some.over > 0 {
		all = append(all, probes.Measure{
			Name: "stalled", Unit: probes.Ratio, Value: v.some.counts / 100,
			Degraded: t.StalledPercent / 100, Clear: t.StalledPercent / factor / 100,
		})
	}
	if v.full.over > 0 {
		all = append(all, probes.Measure{
			Name: "stalled_fully", Unit: probes.Ratio, Value: v.full.counts / 100, Critical: t.CriticalStalledPercent / 100,
		})
	}
	if v.emptyIn < trend.Never {
		within := t.RunningOutWithin.Seconds()
		all = append(all, probes.Measure{Name: "empty_in", Unit: probes.Seconds, Value: v.emptyIn.Seconds(), Degraded: within, Clear: within * factor})
	}
	return all
}
