package refit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// rarePositives are rows of two classes with about one positive in odds, whose logits are sharpness times too large.
func rarePositives(seed uint64, n int, odds, sharpness float64) []acc.SampleRow {
	r := rand.New(rand.NewPCG(seed, 17))
	out := make([]acc.SampleRow, n)
	for i := range out {
		z := -math.Log(odds) - .9 + 1.3*r.NormFloat64()
		half := float32(z / 2 * sharpness)
		row := acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}, W: 1, Z: []float32{-half, half},
			TS: batchtest.Start + int64(i)*second/10}
		if r.Float64() < 1/(1+math.Exp(-z)) {
			row.Y = 1
		}
		out[i] = row
	}
	return out
}

// TestRarePositives: logits that are twice too large are halved although one row in hundreds is positive, and stay so.
// With the floor of common classes every score below it costs the same, and to call positives impossible was best.
// Calibrated scores stay as they are.
func TestRarePositives(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	cfg.Method, cfg.RollbackPanes = "temperature", 100_000
	for _, c := range []struct{ odds, sharpness float64 }{{200, 2}, {500, 2}, {1000, 2}, {200, 1}, {1000, 1}} {
		x := newFixture(t, cfg, 2)
		kept := 0.0 // nats
		for pane := range slices.Chunk(rarePositives(4, 60_000, c.odds, c.sharpness), 1000) {
			in := &stage.Pane{End: pane[len(pane)-1].TS + 1, Rows: pane, Labelled: int64(len(pane))}
			was, err := capped{2, math.Inf(1)}.appendNLLs(nil, nil, pane)
			x.must(err)
			now, err := capped{2, math.Inf(1)}.appendNLLs(nil, inForce(x.version), pane)
			x.must(err)
			for i := range pane {
				kept += was[i] - now[i]
			}
			x.key.Keep(slices.Clone(pane), 5000)
			x.must(x.Step(in))
			b, err := x.State.Append(nil) // saved and restored, it goes on as before
			x.must(err)
			back := x.stage.NewState(x.version)
			r := binenc.NewReader(b)
			x.must(back.Restore(&r))
			x.State = back
		}
		decided := x.published(pipeline.StreamCalibrators)
		if c.sharpness == 1 {
			if len(decided) > 0 || x.quarters == 0 {
				t.Errorf("1 in %g, calibrated: %d published, %d quarters", c.odds, len(decided), x.quarters)
			}
			continue
		}
		for _, d := range decided {
			if d.Reason == reasonRollback {
				t.Errorf("1 in %g: %s", c.odds, d.Outcome)
			}
		}
		if cal, ok := inForce(x.version).(interface{ T() float64 }); !ok || math.Abs(cal.T()-2) > .5 || kept < 30 {
			t.Errorf("1 in %g: %v in force, %.1f nats gained; want a temperature of about 2", c.odds, cal, kept)
		}
	}
}

// TestRareClass: the bound follows the rarest class where the sample tells the shares, and never falls.
func TestRareClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		k, known    int
		rows, every int // a row of class 1 every so many
		run         int // of them
		want        int
	}{
		{"even", 2, 0, 5000, 2, 1, 0},
		{"one in nine", 2, 0, 4500, 9, 1, 1},
		{"one in a hundred", 2, 0, 5000, 100, 1, 2},
		{"known", 2, 2, 5000, 100, 1, 0},
		{"four rows", 2, 0, 4000, 1000, 1, 0},
		{"in one run", 2, 0, 5000, 5000, 400, 0},
		{"of ten, as common as others", 10, 0, 5000, 10, 1, 0},
	} {
		k := &stage.Key{K: c.k, Sample: make([]acc.SampleRow, c.rows)}
		for i := range k.Sample {
			y := int32(0)
			if c.k > 2 {
				y = int32(i % c.k)
			} else if i%c.every < c.run {
				y = 1
			}
			k.Sample[i].Y = y
		}
		if _, got := rareClass(k, c.known); got != c.want {
			t.Errorf("%s: %d quarters, want %d", c.name, got, c.want)
		}
	}
}
