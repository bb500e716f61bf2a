package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints/apiserver"
)

// FuzzShown checks that, whatever a Node says, the table and the card of it command no
// terminal, are not long, and have no line of the Node's own making.
func FuzzShown(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"\u001b[2J","annotations":{"taintlet.dev/record":"{\"version\":1,\"revision\":1,\"owned\":[\"a\\n:NoSchedule\"],\"conditions\":{\"MemoryPressure\":{\"level\":\"Critical\",\"flaps\":-5,\"heldBy\":\"\\u001b\"}}}","taintlet.dev/held":"a,\n","taintlet.dev/paused":"\r"}},
		  "spec":{"taints":[{"key":"a\n","effect":"NoSchedule"},{"key":"taintlet.dev/memory-pressure","effect":"NoSchedule"}]},
		  "status":{"conditions":[{"type":"HostMemoryPressure","status":"True","reason":"\u202e","message":"\u001b]0;x\u0007","lastTransitionTime":"9999-12-31T23:59:59Z"},{"type":"HostRepairNeeded","status":"True","message":"x"},{"type":"Ready","status":"\u0085"}]}}`,
		`{"metadata":{"name":"b","annotations":{"taintlet.dev/record":"{\"version\":7"}},"status":{"conditions":[{"type":"HostNetworkUnavailable","status":"True","reason":"CutOff","message":"culprit: pod 1"}]}}`,
	} {
		f.Add([]byte(text))
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		given := &corev1.Node{}
		if json.Unmarshal(text, given) != nil {
			return
		}
		for _, output := range []string{OutputTable, OutputWide, "json"} {
			fleet := NewFleet(Options{})
			fleet.Add(apiserver.NodeOf(given))
			var out strings.Builder
			if err := (Options{Out: &out, Output: output}).print(fleet.Report(now)); err != nil {
				t.Fatal(err)
			}
			for _, r := range out.String() {
				if r != '\n' && (!unicode.IsPrint(r) || unicode.IsMark(r)) {
					t.Fatalf("%s has %q", output, r)
				}
			}
			if out.Len() > 64<<10 {
				t.Errorf("%s has %d bytes", output, out.Len())
			}
		}
	})
}
