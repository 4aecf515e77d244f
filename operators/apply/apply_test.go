package apply

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestCalibratedRowsCanBeMadeAgain: from a message, the logits and the calibrators that were published, anybody makes
// the probabilities of every row again: the message has the corrections, and which row has which is told by its time.
func TestCalibratedRowsCanBeMadeAgain(t *testing.T) {
	const second = int64(1e9)
	versions := []arrowio.ModelKey{{Model: "m", Version: "v1"}, {Model: "m", Version: "v2"}}
	p, temperatures := NewPublished(0), map[int]float64{0: 1, 1: 2, 2: .5}
	for revision, from := range map[int]int64{1: 100, 2: 140} {
		if err := p.Put(versions[0], Publication{Revision: revision, From: from * second,
			Encoded: batchtest.Temperature(t, temperatures[revision])}); err != nil {
			t.Fatal(err)
		}
	}
	own := []calibrator.ClassCorrection{{Class: 1, TopCorrection: calibrator.TopCorrection{Slope: 1, Intercept: 1}}}
	for _, c := range []struct {
		m              arrowio.ModelKey
		revision       int
		from           int64
		slope, shift   float64
		power          float64
		ofItsOwn, none bool
	}{{versions[0], 1, 110, .5, .2, 0, false, false}, {versions[0], 1, 120, .8, -.2, 1.5, true, false},
		{versions[0], 1, 130, 1, 0, 1, false, true}, {versions[1], 0, 115, .6, .1, 0, false, false}} {
		top := Top{Revision: c.revision, From: c.from * second, Correction: calibrator.Correction{Power: c.power,
			TopCorrection: calibrator.TopCorrection{Slope: c.slope, Intercept: c.shift}}}
		if c.ofItsOwn {
			top.Correction.Apart = own
		}
		if top.Correction.None() != c.none {
			t.Fatalf("correction %+v", top)
		}
		if err := p.Correct(c.m, top); err != nil {
			t.Fatal(err)
		}
	}
	rows := batchtest.Rows(7, batchtest.Options{N: 400, K: 3, Versions: []string{"v1", "v2"}})
	columns := arrowio.Columns{Model: "m", K: 3, Slices: []arrowio.StringColumn{{Name: "version"}}}
	for i := range rows {
		rows[i].TS = (90 + int64(i)*60/400) * second
		columns.IDs, columns.TS = append(columns.IDs, rows[i].ID), append(columns.TS, rows[i].TS)
		columns.Logits = append(columns.Logits, rows[i].Scores...)
		columns.Slices[0].Values = append(columns.Slices[0].Values, rows[i].Version)
	}
	message, err := arrowio.EncodePredictions(columns)
	if err != nil {
		t.Fatal(err)
	}
	batches, err := arrowio.NewDecoder(arrowio.Options{}).Decode(message, arrowio.Origin{}, arrowio.Predictions)
	if err != nil || len(batches) != 1 {
		t.Fatalf("%d batches: %v", len(batches), err)
	}
	defer batches[0].Release()
	out := pipeline.NewOut(pipeline.NewCounts())
	op := New(Options{Config: Config{Columns: "probs"}, Published: p}, pipeline.Host{Out: out})
	if _, err := op.Process(t.Context(), batches[0], func(*arrowio.Batch) (pipeline.Rejects, error) {
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	messages := out.Drain()
	if len(messages) != 1 {
		t.Fatalf("%d messages", len(messages))
	}
	probs, corrections := read(t, messages[0].Value)
	if len(corrections) != 4 {
		t.Errorf("the message has %d corrections, want the 4 that its rows met: %+v", len(corrections), corrections)
	}
	for i, row := range rows {
		revision := 0
		if row.Version == "v1" && row.TS >= 100*second {
			if revision = 1; row.TS >= 140*second {
				revision = 2
			}
		}
		want := make([]float64, 3)
		z := make([]float64, 3)
		for k, x := range row.Scores {
			z[k] = float64(x) / temperatures[revision]
		}
		calibrator.Identity{}.Apply(want, z)
		if c := newest(corrections, row, revision); c != nil {
			c.Apply(want)
		}
		for k, x := range want {
			if got := float64(probs[3*i+k]); math.Abs(got-x) > 1e-6 {
				t.Fatalf("row %d of %s at %d s, revision %d: probability %d is %g, made again %g", i, row.Version,
					row.TS/second, revision, k, got, x)
			}
		}
	}
}

// applied is a correction as a reader of a message sees it.
type applied struct {
	Model, Version string
	Revision       int
	EffectiveFrom  time.Time `json:"effective_from"`
	Correction     calibrator.Correction
}

// newest is the correction of a row by the rule that docs/schema.md states.
func newest(of []applied, row batchtest.Row, revision int) (c *calibrator.Correction) {
	var from time.Time
	for i := range of {
		a := &of[i]
		if a.Model == row.Model && a.Version == row.Version && a.Revision == revision &&
			a.EffectiveFrom.UnixNano() <= row.TS && !a.EffectiveFrom.Before(from) {
			c, from = &a.Correction, a.EffectiveFrom
		}
	}
	return c
}

// read returns the probabilities and corrections of a calibrated message.
func read(t *testing.T, value []byte) (probs []float32, corrections []applied) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal("no record batch")
	}
	at := r.Schema().FieldIndices("probs")
	probs = append(probs, r.Record().Column(at[0]).(*array.FixedSizeList).ListValues().(*array.Float32).
		Float32Values()...)
	md := r.Schema().Metadata()
	if text, ok := md.GetValue(arrowio.MetaCorrection); ok {
		if err := json.Unmarshal([]byte(text), &corrections); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return probs, corrections
}
