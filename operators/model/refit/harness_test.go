package refit

import (
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// The tests of this package are internal, because they check the figures that decisions depend on. Tests of whole
// refits are in operators/model.

const (
	second     = batchtest.Second
	paneLength = 10 * second
	sampleRows = 4096
)

func testConfig() Config {
	return Config{Method: "temperature", Period: 60 * time.Second, OnAlarm: true, FirstAnswer: true,
		FreshRows: 300, MinRows: 200,
		MaxRows: 2000, TestShare: .3,
		Delay: 1, Alpha: .05, ValidationRows: 1000, RollbackPanes: 10_000, MaxECERise: .01, MaxAccuracyDrop: .01,
		Cooldown: 20 * time.Second}
}

// fixture is a stage with the state of one version, and its outputs.
type fixture struct {
	*State
	t       testing.TB
	key     *stage.Key
	outputs []pipeline.Message
}

// newFixture returns the fixture of a version with k classes.
func newFixture(t testing.TB, cfg Config, k int) *fixture {
	v := &stage.Version{Model: "m", Name: "v", K: k}
	f := &fixture{t: t, key: &stage.Key{Version: v, K: k}}
	env := &stage.Env{Pane: paneLength, FinalAfter: 120 * second, Counts: pipeline.NewCounts(),
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Emit:  func(_ *stage.Key, m pipeline.Message) { f.outputs = append(f.outputs, m) },
		Whole: func(*stage.Version) *stage.Key { return f.key }}
	f.State = New(env, cfg, Deps{}).NewState(v)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// published removes and returns the decisions of a stream.
func (f *fixture) published(s pipeline.Stream) (out []record.Calibrator) {
	for _, m := range f.outputs {
		if m.Stream == s {
			var d record.Calibrator
			f.must(json.Unmarshal(m.Value, &d))
			out = append(out, d)
		}
	}
	return out
}

func sample(rows []batchtest.Row) []acc.SampleRow {
	out := make([]acc.SampleRow, 0, len(rows))
	for i, r := range rows {
		out = append(out, acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: r.TS, LabelTS: r.LabelTS, W: 1,
			Y: r.Label,
			Z: slices.Clone(r.Scores)})
	}
	return out
}

// inForceAs returns a calibrator that a refit put into force for the given reason.
func inForceAs(t testing.TB, revision int, temperature float64, reason string) *stage.InForce {
	t.Helper()
	b := batchtest.Temperature(t, temperature)
	c, err := calibrator.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return &stage.InForce{Revision: revision, Cal: c, Encoded: b, Reason: reason}
}
