package main

import (
	"os"
	"testing"
	"time"
)

// ordinary is a day of a cluster to which nothing happens that a host should be
// tainted for:
//
//   - one packet in a thousand is lost on the way to each host, and back
//   - from 01:00 on each Node is rebooted, one every 20 minutes, and away for 4 minutes
//   - at 02:00 the API server is away for 2 minutes, at 03:00 DNS for one
//   - at 16:00 each agent is replaced, one every 15 s, and away for 10 s
//   - at 17:00 each pod of the network plugin is replaced, one every 30 s: its daemon
//     is away for 20 s, and the overlay for 5 s
//   - at 19:00 three Nodes leave at once, and come back after 10 minutes
//   - at 21:00 kube-proxy is replaced, one Node every 45 s: nobody listens there any more
//   - a tenth of the Nodes is cordoned all day
func ordinary(f *fleet) {
	f.apiDown = span{2 * time.Hour, 2*time.Hour + 2*time.Minute}
	f.dnsDown = span{3 * time.Hour, 3*time.Hour + time.Minute}
	for i, n := range f.nodes {
		away := func(begin, every, lasts time.Duration) span {
			begin += time.Duration(i) * every
			return span{begin, begin + lasts}
		}
		n.lossy, n.loss, n.cordoned = from(0), 0.001, i%10 == 3
		n.dead = spans{away(time.Hour, 20*time.Minute, 4*time.Minute)}
		if i%15 == 7 {
			n.dead = append(n.dead, span{19 * time.Hour, 19*time.Hour + 10*time.Minute})
		}
		n.in = away(16*time.Hour, 15*time.Second, 10*time.Second)
		n.local = away(17*time.Hour, 30*time.Second, 20*time.Second)
		n.daemonless = from(away(21*time.Hour, 45*time.Second, 0).from)
		n.vxlan = away(17*time.Hour, 30*time.Second, 5*time.Second)
	}
}

// A day of ordinary life accuses nobody. In a short run it is the hours with the
// reboots and the API server.
func TestAnOrdinaryDayAccusesNobody(t *testing.T) {
	t.Parallel()
	lasts := 24 * time.Hour
	if testing.Short() {
		lasts = 4 * time.Hour
	}
	s := scenario{name: "a day of ordinary life", size: 40, zones: 3, lasts: lasts, happens: ordinary}
	f, m := s.play(1)
	if m.healthyAccused+m.brokenAccused > 0 {
		whom(os.Stdout, f)
		t.Errorf("%d of %d nodes are accused", m.healthyAccused+m.brokenAccused, s.size)
	}
}
