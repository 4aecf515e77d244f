package refit

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestRepeats: rows that repeat others, label and all, are no evidence of their own: of a calibrated stream nothing is
// published, of one that is sure too soon something is.
func TestRepeats(t *testing.T) {
	const repeats = 10
	for _, c := range []struct {
		name  string
		sure  float64 // what the true logits are multiplied by
		noise float64 // of each logit
		want  bool
	}{
		{"calibrated", 1, 0, false},
		{"sure too soon", 2.5, 0, true},
		{"calibrated, rounded otherwise in every batch", 1, 1e-6, false},
		{"sure too soon, rounded otherwise", 2.5, 1e-6, true},
	} {
		for seed := range uint64(6) {
			f, next := newFixture(t, testConfig(), 2), repeating(seed, repeats)
			noise := rand.New(rand.NewPCG(seed, 8))
			for at := range int64(120) {
				rows := next(at, c.sure)
				for i := range rows {
					rows[i].Z = []float32{0, rows[i].Z[1] + float32(c.noise*noise.NormFloat64())}
				}
				f.key.Keep(rows, sampleRows)
				f.pane(at, rows)
			}
			if got := f.version.Newest() != nil; got != c.want {
				t.Errorf("%s, seed %d: published %v, want %v", c.name, seed, got, c.want)
			}
		}
	}
}

// repeating returns what gives the 100 rows of a pane, each several times, with logits of so many times the true ones.
func repeating(seed uint64, times int) func(at int64, sure float64) []acc.SampleRow {
	rng, n := rand.New(rand.NewPCG(seed, 7)), uint64(0)
	var row acc.SampleRow
	return func(at int64, sure float64) (rows []acc.SampleRow) {
		for i := range int64(100) {
			if n++; n%uint64(times) == 1 {
				z := 3 * rng.NormFloat64()
				row = acc.SampleRow{W: 1, Z: []float32{0, float32(sure * z)}}
				if rng.Float64() < 1/(1+math.Exp(-z)) {
					row.Y = 1
				}
			}
			binary.LittleEndian.PutUint64(row.ID[:], n)
			row.TS = at*paneLength + i
			row.LabelTS = row.TS
			rows = append(rows, row)
		}
		return rows
	}
}

// TestIdlePanes: of panes without rows only the first looks through the sample, whether or not rows repeat others; a
// model that is used once a day has 8,639 of them a day.
func TestIdlePanes(t *testing.T) {
	for _, times := range []int{2, 10} {
		f, next := newFixture(t, testConfig(), 2), repeating(1, times)
		at := int64(0)
		for ; at < 30; at++ {
			rows := next(at, 1)
			f.key.Keep(rows, sampleRows)
			f.pane(at, rows)
		}
		idle := func() {
			f.must(StepEmpty(f.State, &stage.Pane{Index: at, End: (at + 1) * paneLength}))
			at++
		}
		idle()
		was := f.sampled()
		if n, most := testing.AllocsPerRun(100, idle), 5.; n > most {
			t.Errorf("each row %d times: %v allocations in a pane without rows, most %v", times, n, most)
		}
		if now := f.sampled(); now.Added != was.Added || len(now.Sample) != len(was.Sample) {
			t.Errorf("each row %d times: %d rows of %d, were %d of %d", times, len(now.Sample), now.Added,
				len(was.Sample), was.Added)
		}
	}
}

// TestIdlePanesOfAnAlarm: while an alert fires, too, a pane without rows copies no sample.
func TestIdlePanesOfAnAlarm(t *testing.T) {
	f, next := newFixture(t, testConfig(), 2), repeating(1, 2)
	f.key.Alerts = []*stage.Alert{{AlertState: stage.AlertState{State: stage.Firing, Since: 1}}}
	at := int64(0)
	for ; at < 30; at++ {
		rows := next(at, 1)
		f.key.Keep(rows, sampleRows)
		f.pane(at, rows)
	}
	for range 2 * at { // a refit on the alarm is tried in one of them
		f.must(StepEmpty(f.State, &stage.Pane{Index: at, End: (at + 1) * paneLength}))
		at++
	}
	f.run = nil
	n := testing.AllocsPerRun(100, func() {
		f.must(StepEmpty(f.State, &stage.Pane{Index: at, End: (at + 1) * paneLength}))
		at++
	})
	if most := 5.; n > most {
		t.Errorf("%v allocations in a pane without rows, most %v", n, most)
	}
}

// TestRepeatsGoOn: a restored version decides as one that went on, while rows repeat others.
func TestRepeatsGoOn(t *testing.T) {
	cfg := testConfig()
	cfg.FirstAnswer, cfg.Alpha, cfg.MinRows, cfg.FreshRows, cfg.ValidationRows = false, .5, 50, 50, 100_000
	cfg.Cooldown = 1 // decisions that are close
	for seed := range uint64(12) {
		var said [2][]byte
		for i, restored := range []bool{false, true} {
			f, next := newFixture(t, cfg, 2), repeating(seed, 3)
			for at := range int64(120) {
				sure := 2.2
				if at/20%3 != 0 { // the error comes and goes, so candidates wait
					sure = .8
				}
				rows := next(at, sure)
				if restored {
					b, err := f.Append(nil)
					f.must(err)
					again, in := f.stage.NewState(f.version), binenc.NewReader(b)
					f.must(again.Restore(&in))
					f.State = again
				}
				f.key.Keep(rows, sampleRows)
				f.pane(at, rows)
			}
			for _, m := range f.outputs {
				said[i] = append(said[i], m.Value...)
			}
		}
		if len(said[0]) == 0 || !bytes.Equal(said[0], said[1]) {
			t.Errorf("seed %d: %d bytes of outputs, others after restores", seed, len(said[0]))
		}
	}
}

// TestRepeatsOfTrees: rows of few different scores are all evidence.
func TestRepeatsOfTrees(t *testing.T) {
	for _, leaves := range []int{15, 60, 300} {
		for _, right := range []float64{.8, .98} {
			rng, k, told := rand.New(rand.NewPCG(uint64(leaves), 1)), &stage.Key{K: 2}, 0
			for at := range int64(100) {
				var rows []acc.SampleRow
				for range 50 {
					row := acc.SampleRow{W: 1, TS: at, Z: []float32{0, 1 + float32(rng.IntN(leaves))/100}}
					if rng.Float64() < right {
						row.Y = 1
					}
					rows = append(rows, row)
				}
				if k.Keep(rows, sampleRows); at > 1 {
					n, _ := stage.Repeats(k, math.MinInt64, stage.RepeatsLikely)
					told += min(n, 1)
				}
			}
			if told > 1 {
				t.Errorf("%d leaves, %g right: %d of 98 panes are told to have repeats", leaves, right, told)
			}
		}
	}
}
