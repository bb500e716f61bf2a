package sampling

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// An hour of a busy host makes no patch, by the defaults and by thresholds that the noise
// comes near to all the time: between 72 and 100 % of its memory was available, and between
// 31,780 and 32,687 of its tasks were free.
func TestTheRecordedHourIsQuiet(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]string{
		"defaults": "",
		"near":     "memory: {availablePercent: 60}\npid: {usedPercent: 3.2, debounce: {clearFactor: 1.02}}",
	} {
		cfg, err := config.HostSchema().Load(fixtures.ConfigFile(t, fields))
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range []probes.Condition{probes.MemoryPressure, probes.PIDPressure} {
			hour := course{name: name, condition: condition, at: recordedHour(t, condition), lasts: time.Hour}
			o := hour.play(t, cfg, 0)
			if o.patches > 0 || o.tainted > 0 || (o.near > 100) != (name == "near") {
				t.Errorf("%s, %s: %d patches, tainted for %s, %d samples near the threshold", name, condition, o.patches, o.tainted, o.near)
			}
		}
	}
}
