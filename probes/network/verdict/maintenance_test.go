package verdict

import (
	"testing"
	"time"
)

// maintained puts the first peers under maintenance.
func maintained(peers int) change {
	return answers(func(i int, a *Answer) { a.Maintenance = i < peers })
}

// What a peer under maintenance says excuses other hosts, and accuses none.
func TestPeersUnderMaintenanceAccuseNobody(t *testing.T) {
	t.Parallel()
	dnsFails := class(DNS, Failed, "")
	failsAt := func(first, last int) change {
		return answers(func(i int, a *Answer) { a.Classes[DNS] = i < first || i > last })
	}
	loses := func(first, last int) change {
		return answers(func(i int, a *Answer) {
			if a.Lossy = 0; i >= first && i <= last {
				a.Lossy = 100
			}
		})
	}
	for _, test := range []struct {
		name    string
		want    string
		changes []change
	}{
		{"all are well", "DNSUnreachable", []change{dnsFails}},
		{"all are well, and ten are under maintenance", "NotProven", []change{dnsFails, maintained(10)}},
		{"all are well, and nine are under maintenance", "DNSUnreachable", []change{dnsFails, maintained(9)}},
		{"five of twelve fail too", "NotProven", []change{dnsFails, failsAt(0, 4)}},
		{"five of twelve fail too, which are under maintenance", "NotProven", []change{dnsFails, failsAt(0, 4), maintained(5)}},
		{"this host loses packets", "PacketLoss", []change{retransmits(12), loses(12, 12)}},
		{"it loses packets, and all are under maintenance", "NotProven", []change{retransmits(12), loses(12, 12), maintained(12)}},
		{"it loses packets, and all but one are under maintenance", "NotProven", []change{retransmits(12), loses(12, 12), maintained(11)}},
		{"seven peers lose packets too", "NotProven", []change{retransmits(12), loses(0, 6)}},
		{"seven peers lose packets too, which are under maintenance", "NotProven", []change{retransmits(12), loses(0, 6), maintained(7)}},
	} {
		s := played(5)
		if o := s.play(int(5*time.Minute/testPeriod), test.changes...); o.Reason != test.want {
			t.Errorf("%s: %s: %s, want %s", test.name, o.Reason, o.Message, test.want)
		}
	}
}
