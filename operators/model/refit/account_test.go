package refit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// stream chooses the label of a row of scores, when it sees what is served for it; served is nil for the identity.
type stream func(r *rand.Rand, i int, row *acc.SampleRow, served *stage.InForce) int32

// drawnAs draws a label from softmax(z/t).
func drawnAs(r *rand.Rand, z []float32, t float64) int32 {
	sum, p := 0.0, make([]float64, len(z))
	for j := range z {
		p[j] = math.Exp(float64(z[j]) / t)
		sum += p[j]
	}
	u := r.Float64() * sum
	for j := range p {
		if u -= p[j]; u < 0 {
			return int32(j)
		}
	}
	return int32(len(z) - 1)
}

// hostile are streams that make calibration lose.
func hostile(t *testing.T) map[string]stream {
	// against is the label that what is served loses most with; it lures another answer while nothing is served.
	against := func(lure float64) stream {
		return func(r *rand.Rand, _ int, row *acc.SampleRow, served *stage.InForce) int32 {
			if served == nil || isIdentity(served.Cal) {
				return drawnAs(r, row.Z, lure)
			}
			sc, worst, most := stage.NewScorer(4), int32(0), math.Inf(-1)
			for y := range int32(4) {
				row.Y = y
				now, err := sc.Row(served.Cal, row, nllBound(4, 0))
				if err != nil {
					t.Fatal(err)
				}
				raw, err := sc.Row(nil, row, nllBound(4, 0))
				if err != nil {
					t.Fatal(err)
				}
				if x := now.NLL - raw.NLL; x > most {
					worst, most = y, x
				}
			}
			return worst
		}
	}
	turning := func(rows int) stream {
		return func(r *rand.Rand, i int, row *acc.SampleRow, _ *stage.InForce) int32 {
			return drawnAs(r, row.Z, []float64{.3, 4}[i/rows%2])
		}
	}
	return map[string]stream{"against what is served, flat": against(5), "against what is served, sharp": against(.2),
		"turning after 300": turning(300), "turning after 1,000": turning(1000),
		"random": func(r *rand.Rand, _ int, row *acc.SampleRow, _ *stage.InForce) int32 {
			return drawnAs(r, row.Z, math.Exp(2*r.NormFloat64()))
		}}
}

// follow runs the refits of a version on a stream, with labels delay rows late. It returns the regret to the raw scores
// after each pane, by the rows labelled so far. counted = false: the account forgets everything.
func follow(x *fixture, label stream, n, delay int, counted bool) (regret []float64) {
	const pane = 50
	r, sc, sum := rand.New(rand.NewPCG(uint64(n), 3)), stage.NewScorer(4), 0.0
	var all []acc.SampleRow
	for i := 0; i < n; i++ {
		row := acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: batchtest.Start + int64(i)*second, W: 1,
			Z: make([]float32, 4)}
		for j := range row.Z {
			row.Z[j] = float32(2 * r.NormFloat64())
		}
		f := x.version.At(row.TS, row.ID)
		row.Y = label(r, i, &row, f)
		row.LabelTS = row.TS + int64(delay)*second
		all = append(all, row)
		if (i+1)%pane != 0 || i < delay { // no label has come
			continue
		}
		end := all[i].TS + 1
		rows := slices.Clone(all[max(0, i+1-delay-pane) : i+1-delay])
		for j := range rows {
			f := x.version.At(rows[j].TS, rows[j].ID)
			if f == nil {
				continue
			}
			now, err := sc.Row(f.Cal, &rows[j], nllBound(4, 0))
			x.must(err)
			raw, err := sc.Row(nil, &rows[j], nllBound(4, 0))
			x.must(err)
			sum += now.NLL - raw.NLL
		}
		regret = append(regret, sum)
		x.key.Labelled += int64(len(rows))
		x.key.Added += int64(len(rows))
		x.key.Keep(slices.Clone(rows), sampleRows)
		x.must(x.Step(&stage.Pane{Index: pipeline.PaneIndex(end, paneLength), End: end, Rows: rows,
			Labelled: int64(len(rows))}))
		if !counted {
			x.account = account{}
		}
		b, err := x.State.Append(nil) // saved and restored, it goes on as before
		x.must(err)
		back, in := x.stage.NewState(x.version), binenc.NewReader(b)
		x.stage.cancel(x.run)
		x.must(back.Restore(&in))
		x.State = back
	}
	return regret
}

// TestRegretToTheRawScores: on any stream, what is served loses at most log2(2 + N/h)·(c + n·B) nats more than the raw
// scores among any N rows, for n rows in flight. Labels chosen against what is served cost more where nothing counts.
func TestRegretToTheRawScores(t *testing.T) {
	t.Parallel()
	const n, pane = 16_000, 50
	for name, label := range hostile(t) {
		for _, delay := range []int{0, 100} {
			if delay > 0 && !strings.HasPrefix(name, "against") {
				continue
			}
			t.Run(fmt.Sprintf("%s, labels %d rows late", name, delay), func(t *testing.T) {
				t.Parallel()
				x := newFixture(t, testConfig(), 4)
				most := func(rows int) float64 {
					return math.Log2(2+float64(rows)/float64(x.stage.cfg.FreshRows)) *
						(accountLimit + float64(pane+delay)*nllBound(4, 0))
				}
				regret := follow(x, label, n, delay, true)
				for i, lost := range regret {
					if rows := (i + 1) * pane; lost > most(rows) {
						t.Fatalf("after %d rows %.1f nats are lost, want at most %.1f", rows, lost, most(rows))
					}
				}
				if delay > 0 || !strings.HasPrefix(name, "against") {
					return
				}
				free := follow(newFixture(t, testConfig(), 4), label, n, delay, false)
				if last := free[len(free)-1]; x.account.returns == 0 || last <= most(n) {
					t.Errorf("%d returns, and uncounted %.1f nats are lost, want more than %.1f", x.account.returns,
						last, most(n))
				}
			})
		}
	}
}

// TestRestAfterReturn: after the j-th return of the identity nothing takes force for h·2^j rows, not even what an
// earlier calibrator's evidence asks for. A pin ends that, and stops the count.
func TestRestAfterReturn(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	flat := inForceAs(t, 0, 8, "")
	d := record.Calibrator{Reason: reasonPeriod}
	x.must(x.putInForce(&d, flat.Cal, flat.Encoded, batchtest.Start-second))
	rows := sample(batchtest.Rows(7, batchtest.Options{N: 4000, Sharpness: .3}))
	pane := func(i int) *stage.Pane {
		for j := i; j < i+50; j++ {
			rows[j].TS = batchtest.Start + int64(j)*second
		}
		x.key.Keep(slices.Clone(rows[i:i+50]), sampleRows)
		return &stage.Pane{End: rows[i+49].TS + 1, Rows: rows[i : i+50], Labelled: 50}
	}
	x.pin = &pin{by: "somebody"}
	x.must(x.Step(pane(0)))
	if x.account.lost != 0 || x.version.InForceRevision() != 1 {
		t.Fatalf("%v nats lost while pinned", x.account.lost)
	}
	x.pin = nil
	i := 50
	for ; x.account.returns == 0; i += 50 {
		x.must(x.Step(pane(i)))
	}
	c := x.published(pipeline.StreamCalibrators)
	if last := c[len(c)-1]; last.Reason != reasonRollback || last.Restores == nil || *last.Restores != 0 ||
		last.Method != "identity" {
		t.Fatalf("after %d rows %+v, want the identity", i, last)
	}
	begun := i
	for ; x.version.InForceRevision() == 2 && i < len(rows); i += 50 {
		x.must(x.Step(pane(i)))
	}
	if rest := i - begun; rest < 2*x.stage.cfg.FreshRows || rest > 3*x.stage.cfg.FreshRows {
		t.Errorf("the next one took force after %d rows, want %d", rest, 2*x.stage.cfg.FreshRows)
	}
}

// TestRestEndsWithoutRollback: a rest that was begun before rollbacks were switched off ends after its rows.
func TestRestEndsWithoutRollback(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.RollbackPanes = 0
	x := newFixture(t, cfg, 4)
	x.account.rest = 600
	rows := sample(batchtest.Rows(201, batchtest.Options{N: 5000, Sharpness: 3}))
	for i := 0; i < len(rows); i += 50 {
		for j := i; j < i+50; j++ {
			rows[j].TS = batchtest.Start + int64(j)*second
		}
		x.key.Keep(slices.Clone(rows[i:i+50]), sampleRows)
		x.must(x.Step(&stage.Pane{End: rows[i+49].TS + 1, Rows: rows[i : i+50], Labelled: 50}))
		if took := x.version.InForceRevision() > 0; took && i < 550 {
			t.Fatalf("a calibrator took force after %d rows of a rest of 600", i+50)
		}
	}
	if x.account.rest > 0 || x.version.InForceRevision() == 0 {
		t.Errorf("%d rows to rest, revision %d, after %d rows", x.account.rest, x.version.InForceRevision(), len(rows))
	}
}
