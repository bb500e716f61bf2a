package fleet

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// FuzzChoose checks that, whatever a list of EndpointSlices says, an agent asks at most 12
// Nodes, each of them once in a family, at addresses that differ, and never its own Node.
func FuzzChoose(f *testing.F) {
	slice := func(first, last int) string {
		text := `{"addressType":"IPv4","ports":[{"name":"metrics","port":4808}],"endpoints":[`
		for i := first; i <= last; i++ {
			text += fmt.Sprintf(`{"addresses":["10.0.0.%d"],"nodeName":"node-%d","zone":"z%d"},`, i, i, i%3)
		}
		return text + `{"addresses":[],"nodeName":null}]}`
	}
	f.Add([]byte(`[]`), "node-1", "")
	f.Add([]byte(`[`+slice(1, 40)+`]`), "node-1", "z1")
	f.Add([]byte(`[`+slice(1, 9)+`,`+slice(1, 9)+`]`), "", "z9")
	f.Add([]byte(`[{"addressType":"IPv4","ports":[{"port":4808}],"endpoints":[{"addresses":["10.0.0.1"],"nodeName":"a"},{"addresses":["10.0.0.1"],"nodeName":"b"},{"addresses":["10.0.0.2"],"nodeName":"a"}]}]`), "c", "")
	f.Fuzz(func(t *testing.T, data []byte, own, zone string) {
		var list []discoveryv1.EndpointSlice
		if json.Unmarshal(data, &list) != nil {
			return
		}
		var all []endpoint
		for i := range list {
			all = append(all, endpointsOf(&list[i], 4808)...)
		}
		chosen := choose(own, zone, all, MaxPeers)
		nodes, addresses := map[string]bool{}, map[netip.Addr]bool{}
		for _, e := range chosen {
			if e.node == own || nodes[e.node] || addresses[e.address.Addr()] || e.second.IsValid() && (addresses[e.second.Addr()] || e.second.Addr().Is4() == e.address.Addr().Is4()) {
				t.Errorf("asked: %+v of %+v", e, chosen)
			}
			nodes[e.node], addresses[e.address.Addr()], addresses[e.second.Addr()] = true, true, true
		}
		if len(chosen) > MaxPeers {
			t.Errorf("%d peers", len(chosen))
		}
	})
}

// FuzzHeard checks that, whatever a peer answers to GET /peer, it counts as one peer, for the
// conditions of this host alone, and that this host still answers its own peers.
func FuzzHeard(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"version":1,"levels":{"MemoryPressure":"Degraded","LunarPhase":"Critical"},"lossy":-1,"reach":50}`,
		`{"version":2,"levels":{"MemoryPressure":"Degraded"}}`, `{"version":1,"maintenance":true,"levels":{"MemoryPressure":"OK","DiskPressure":"Unknown"}}`,
		`{"version":1,"classes":{"pods":false,"":true},"full":-1,"pods":{"10.0.0.1:53":true,"[::1]:0":false}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var answer verdict.Answer
		if json.Unmarshal(data, &answer) != nil {
			return
		}
		alone := Alone()
		alone.zones = map[string]string{"liar": "", "other": ""}
		alone.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK}, false, nil)
		for range 3 {
			alone.Consult(t.Context(), &verdict.Verdict{Round: *roundOf(map[string]verdict.Answer{"liar": answer, "stranger": answer})})
		}
		for condition, share := range alone.Peers().Shares {
			if condition != probes.MemoryPressure || share.Asked > 1 || share.Bad > share.Asked {
				t.Errorf("%s is %+v", condition, share)
			}
		}
		alone.Consult(t.Context(), &verdict.Verdict{Own: answer})
		var own verdict.Answer
		if err := json.Unmarshal(alone.Page(), &own); err != nil || own.Version != verdict.AnswerVersion || own.Levels[probes.MemoryPressure] != probes.OK {
			t.Errorf("the own page is %s: %v", alone.Page(), err)
		}
	})
}
