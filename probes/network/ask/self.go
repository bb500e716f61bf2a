package ask

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Self is the control probe: a connection to this host's own address, which needs no network. A
// late result therefore shows that this host is slow. It fails where the rule that looks up own
// addresses is lost.
type Self struct {
	// Took is how long the connection of this round took; 0: there was none.
	Took time.Duration
}

// Ask implements Check.
func (s *Self) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	address := in.Self
	if !address.IsValid() {
		return verdict.Result{Detail: "the own address is not known"}
	}
	begin := time.Now()
	err := knock(ctx, address, patience)
	if !isThere(err) {
		return verdict.Result{Outcome: verdict.Failed, Detail: "own address " + address.String() + ": " + why(err)}
	}
	s.Took = time.Since(begin)
	return verdict.Result{Outcome: verdict.Well, Detail: "own address answered in " + s.Took.Round(10*time.Microsecond).String()}
}
