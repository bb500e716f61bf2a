package fleet

import (
	"encoding/json"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// FuzzSlice: whatever an EndpointSlice says, agents ask other hosts, at the port of the agents.
func FuzzSlice(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"nodeName":"a"}],"ports":[{"name":"metrics","port":4808}]}`,
		`{"addressType":"IPv6","endpoints":[{"addresses":["::ffff:127.0.0.1"],"nodeName":"a"},{"addresses":["fe80::1%eth0"],"nodeName":"b"}],"ports":[{"name":"metrics","port":4808,"protocol":"UDP"}]}`,
		`{"addressType":"FQDN","endpoints":[{"addresses":["localhost"],"nodeName":"a"}],"ports":[{"name":"metrics","port":65536},{"port":-1}]}`,
		`{"addressType":"IPv4","endpoints":[{"addresses":["169.254.169.254"],"nodeName":"a","zone":"z"}],"ports":[{"name":"metrics","port":80},{"name":"x","port":4808}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		slice := &discoveryv1.EndpointSlice{}
		if json.Unmarshal(data, slice) != nil {
			return
		}
		for _, e := range endpointsOf(slice, 4808) {
			a := e.address.Addr()
			if !a.IsGlobalUnicast() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.Is4In6() || a.Zone() != "" || e.node == "" || e.address.Port() != 4808 {
				t.Errorf("asked: %+v", e)
			}
		}
	})
}
