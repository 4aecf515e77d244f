package detect

import (
	"math/rand/v2"
	"testing"
)

// TestSize keeps the state of a key as small as the package documentation says.
func TestSize(t *testing.T) {
	a := newTestAlarm(t, AlarmSpec{})
	rng := rand.New(rand.NewPCG(1, 1))
	for pane := range 50 {
		observe(t, a, int64(1_700_000_000_000_000_000+pane*10_000_000_000),
			paneOf(t, drawRows(rng, 100, -.01), a.Bins()))
	}
	const most = 4 << 10
	if n := len(stateOf(t, a)); n > most {
		t.Errorf("state of an alarm takes %d bytes, documented are %d", n, most)
	} else {
		t.Logf("%d experts, %d bytes", len(a.Headline.state)+len(a.Diagnosis.state), n)
	}
}
