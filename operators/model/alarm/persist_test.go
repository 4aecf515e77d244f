package alarm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestPersists looks at rows since a calibrator took force every 5 rows. Healed alarms seldom look as if they were not,
// be it once in 3,000 rows; errors that stay are found within some hundred rows.
func TestPersists(t *testing.T) {
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	const runs, rows = 100, 3000
	for _, f := range []struct {
		name     string
		by       float64 // of the logits
		named    uint64  // bins
		most     int     // runs that show an error
		soonMean float64 // rows, where all runs must
	}{
		{"healed", 1, 0, 6, 0},
		{"healed, bins named", 1, 0x7f00, 12, 0},
		{"logits × 2", 2, 0, runs, 700},
		{"logits × 3", 3, 0, runs, 350},
	} {
		shown, sum := 0, 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 9))
			a, p := newKeyAlarm(s, stage.SignalCalibrated, true, 0), make(detect.Pane, s.Bins)
			a.bins = f.named
			for n := 1; n <= rows; n++ {
				rate := min(1-.6*math.Pow(rng.Float64(), 3), .999)
				conf := logits(f.by)(rate)
				b := &p[min(s.Bins-1, int(conf*float64(s.Bins)))]
				if rng.Float64() < rate {
					b.N1, b.C1 = b.N1+1, b.C1+conf
				} else {
					b.N0, b.C0 = b.N0+1, b.C0+conf
				}
				if n%5 == 0 && a.outside(p) {
					shown, sum = shown+1, sum+n
					break
				}
			}
		}
		if shown > f.most || f.soonMean > 0 && (shown < runs || float64(sum)/runs > f.soonMean) {
			t.Errorf("%s: %d of %d runs show an error, after %d rows on average; want at most %d, or all after %g",
				f.name, shown, runs, sum/max(shown, 1), f.most, f.soonMean)
		}
	}
}
