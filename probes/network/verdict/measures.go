package verdict

import "github.com/taintlet/taintlet/probes"

// measures returns what the rounds so far show of the peers: how the newest round
// reached them, how many of them are well, and the loss of the last 30 s.
func (e *evidence) measures(r *Round) (all []probes.Measure) {
	if len(r.Peers) > 0 {
		var answered, silent float64
		for i := range r.Peers {
			switch peer := &r.Peers[i]; {
			case peer.Answer != nil:
				answered++
			case peer.isThere():
				silent++
			}
		}
		all = append(all,
			probes.Measure{Name: "peers_answered", Unit: probes.Items, Value: answered},
			probes.Measure{Name: "peers_silent", Unit: probes.Items, Value: silent},
			probes.Measure{Name: "peers_unreachable", Unit: probes.Items, Value: float64(len(r.Peers)) - answered - silent})
	}
	if e.reach.all >= fewestPeers {
		all = append(all, probes.Measure{
			Name: "peers_reached", Unit: probes.Ratio, Value: float64(e.reach.reached) / float64(e.reach.all),
			Degraded: lowPercent / 100., Clear: wellPercent / 100.,
		})
	}
	for i := range e.relatives {
		if c := &e.relatives[i]; c.heard.know > 0 {
			all = append(all, probes.Measure{Name: "peers_well_" + string(c.class), Unit: probes.Ratio, Value: float64(c.heard.well) / float64(c.heard.know)})
		}
	}
	if made := e.loss.all.made; made >= lossFewest {
		all = append(all, probes.Measure{
			Name: "retransmitted", Unit: probes.Ratio, Value: float64(e.loss.all.hit) / float64(made),
			Degraded: lossShare / 100., Clear: lossEasier / 100.,
		})
	}
	return all
}
