package ask

import (
	"context"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// fullPatience is how long an exchange of full packets may take once there is a connection:
// its packets are sent again after 0.2 and 0.6 s.
const fullPatience = time.Second

// askFull asks a peer with a request of a full packet, as large as the kernel thinks that
// packets may be on this way, for an answer of a full packet. A peer that takes
// longer than patience to connect is not asked, because the ordinary question is asked after this
// one.
func askFull(ctx context.Context, peer verdict.Peer, patience time.Duration) verdict.PeerResult {
	result := verdict.PeerResult{Node: peer.Node}
	dialing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := dialToAsk(dialing, peer.Address)
	if err != nil {
		return result
	}
	ctx, end := context.WithTimeout(ctx, fullPatience)
	defer end()
	request := padded(peer, int(infoOf(c).Snd_mss))
	r, err := exchange(ctx, c, request)
	result.FullNow, result.FullBytes, result.Retransmits = true, len(request), r.retransmits
	switch {
	case err != nil && isTimeout(err):
		result.Full = verdict.Lost
	case err == nil:
		if result.Answer = r.answer(); result.Answer != nil && r.bytes >= len(request) {
			result.Full = verdict.Passed
		}
	}
	return result
}

// padded is a request to a peer of so many bytes, or as many as may be.
func padded(peer verdict.Peer, bytes int) string {
	begin := "GET /peer HTTP/1.1\r\nHost: " + peer.Address.String() + "\r\n" + verdict.PaddingHeader + ": "
	const end = "\r\n\r\n"
	return begin + strings.Repeat("x", max(0, min(bytes, verdict.LongestPadded)-len(begin)-len(end))) + end
}
