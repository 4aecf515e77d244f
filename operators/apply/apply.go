package apply

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/pipeline"
)

//go:embed apply.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config turns on the calibrated stream.
type Config struct {
	// Write topics.calibrated.
	Enabled bool `yaml:"enabled"`
	// probs: all K; top1: the class and its confidence.
	Columns string `yaml:"columns" default:"probs" enum:"probs|top1"`
	// Write each batch as soon as it is calibrated, in milliseconds, instead of at the next checkpoint. After a crash
	// the rows since the last checkpoint come again.
	AtOnce bool `yaml:"at_once"`
}

// Options are the configuration and the settings of the process.
type Options struct {
	Config
	Published *Published // shared by all shards of the process
	MaxBytes  int        // of a message; 0 = any
}

var nan = float32(math.NaN())

// Operator writes the calibrated stream: every prediction with the probabilities (or the class and confidence) that the
// calibrator in force at its event time gives; the message names the revisions that its rows met, 0 the identity, and
// has the corrections. It observes only: no statistic depends on it.
type Operator struct {
	cfg   Options
	out   *pipeline.Out
	z, p  []float64
	probs []float32
}

// New returns the operator.
func New(cfg Options, h pipeline.Host) *Operator {
	return &Operator{cfg: cfg, out: h.Out}
}

// Stage is the operator as a shard registers it.
func (a *Operator) Stage() pipeline.Stage { return pipeline.Stage{Name: "apply", Operator: a} }

// Process implements pipeline.Operator; batches pass on unchanged.
func (a *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	if b.Kind == arrowio.Predictions {
		if err := a.write(b); err != nil {
			return b.Reject, err
		}
	}
	return emit(b)
}

func (a *Operator) write(b *arrowio.Batch) error {
	if cap(a.z) < b.K {
		a.z, a.p = make([]float64, b.K), make([]float64, b.K)
	}
	a.probs = a.probs[:0]
	u := used{of: map[arrowio.ModelKey]*View{}}
	for i := range b.N {
		if !b.Good(i) {
			for range b.K {
				a.probs = append(a.probs, nan)
			}
			continue
		}
		a.row(b, i, &u)
	}
	values, err := arrowio.EncodeCalibratedParts(b, a.probs, arrowio.CalibratedOptions{
		TopClass:    a.cfg.Columns == "top1",
		Calibrator:  strings.Join(u.revisions, ","),
		Corrections: u.corrections,
		MaxBytes:    a.cfg.MaxBytes,
	})
	if err != nil {
		return fmt.Errorf("encode calibrated batch: %w", err)
	}
	for _, value := range values {
		a.out.Put(pipeline.Message{
			Stream:    pipeline.StreamCalibrated,
			Partition: b.Origin.Partition,
			Value:     value,
			Time:      b.Origin.Time,
		})
	}
	return nil
}

// used is what the rows of a batch have met.
type used struct {
	of          map[arrowio.ModelKey]*View // the same for all rows: else nobody could tell which had which correction
	revisions   []string
	tops        []*Top
	corrections []arrowio.Correction // of tops
}

// note notes what calibrates a row of a model version; nil is the identity.
func (u *used) note(m arrowio.ModelKey, f *Serving) {
	revision := "0"
	if f != nil {
		if revision = strconv.Itoa(f.Revision); f.Share > 0 {
			revision += "-canary"
		}
	}
	if !slices.Contains(u.revisions, revision) {
		u.revisions = append(u.revisions, revision)
	}
	if f != nil && f.Top != nil && !slices.Contains(u.tops, f.Top) {
		u.tops = append(u.tops, f.Top)
		u.corrections = append(u.corrections, arrowio.Correction{Model: m.Model, Version: m.Version,
			Revision: f.Top.Revision, EffectiveFrom: pipeline.Format(f.Top.From), Correction: &f.Top.Correction})
	}
}

// row appends the probabilities of row i.
func (a *Operator) row(b *arrowio.Batch, i int, u *used) {
	z, p := a.z[:b.K], a.p[:b.K]
	for k, x := range b.Scores[i*b.K : (i+1)*b.K] {
		if b.Probs {
			x = float32(kernel.LogProb(x))
		}
		z[k] = float64(x)
	}
	m, _ := b.ModelOf(i)
	view := u.of[m]
	if view == nil {
		view = a.cfg.Published.Now(m)
		u.of[m] = view
	}
	f := view.At(b.TS[i], b.K, b.RowID(i))
	if u.note(m, f); f != nil {
		f.Calibrator.Apply(p, z)
	} else {
		calibrator.Identity{}.Apply(p, z)
	}
	for _, x := range p {
		a.probs = append(a.probs, float32(x))
	}
}

// Advance implements pipeline.Operator.
func (a *Operator) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }

// State implements pipeline.Operator.
func (a *Operator) State() pipeline.State { return nil }
