package stage_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestDelays: that labels of an outcome come sooner is known when the sample no longer shows it, as in a pause of the
// predictions, where nothing but slow labels come. After the pause, labels in their order are of the quick ones first.
func TestDelays(t *testing.T) {
	t.Parallel()
	const second, slow = int64(time.Second), int64(10 * time.Minute)
	rng := rand.New(rand.NewPCG(1, 2))
	// labels returns those that come in a span, of a prediction a second but in the pause; one in ten is of class 1,
	// the model says .1, and its label comes at once.
	const pause, resumed = int64(3 * time.Hour), int64(3*time.Hour + 30*time.Minute)
	labels := func(from, to int64) (rows []acc.SampleRow) {
		for ts := max(0, from-slow); ts < to; ts += second {
			if ts >= pause && ts < resumed {
				continue
			}
			row := acc.SampleRow{TS: ts, LabelTS: ts + slow, W: 1, Z: []float32{float32(2.2 + .1*rng.NormFloat64()), 0}}
			if rng.IntN(10) == 0 {
				row.Y, row.LabelTS = 1, ts+second
			}
			if row.LabelTS >= from && row.LabelTS < to {
				rows = append(rows, row)
			}
		}
		return rows
	}
	const short, long = 5 * time.Minute, 20 * time.Minute // shorter and longer than slow labels take
	k := &stage.Key{K: 2, Delays: &stage.Delays{}}
	alone := &stage.Key{K: 2}
	for _, c := range []struct {
		at, sample   time.Duration
		since        int64
		settled      int64
		biased, told bool // of the two keys
	}{
		{time.Hour, short, 0, stage.SettledSince, true, true},
		{2 * time.Hour, long, math.MinInt64, stage.SettledInOrder, false, false},            // all come in their order
		{2 * time.Hour, short, int64(time.Hour), stage.SettledSince, true, true},            // of a change
		{3*time.Hour + 9*time.Minute, short, pause - slow, stage.SettledSince, true, false}, // only slow ones are left
		{3*time.Hour + 9*time.Minute, short, math.MinInt64, stage.SettledInOrder, true, false},
		{3*time.Hour + 45*time.Minute, long, math.MinInt64, stage.SettledInOrder, true, false},
		{4*time.Hour + 30*time.Minute, long, math.MinInt64, stage.SettledInOrder, false, false},
	} {
		rows := labels(int64(c.at-c.sample), int64(c.at))
		for _, of := range []struct {
			key  *stage.Key
			want bool
		}{{k, c.biased}, {alone, c.told}} {
			of.key.Sample, of.key.Added = rows, int64(c.at)
			got, err := stage.Biased(of.key, c.since, c.settled)
			if err != nil || (got != "") != of.want || got != "" && !strings.Contains(got, " no fair sample") {
				t.Errorf("at %s, remembering %v: %q, %v; want %v", c.at, of.key == k, got, err, of.want)
			}
		}
	}
}
