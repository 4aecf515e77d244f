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
// calibrator in force at its event time gives; the message names the revisions that its rows met, 0 the identity. It
// observes only: no statistic depends on it.
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
	var revisions []string
	for i := range b.N {
		if !b.Good(i) {
			for range b.K {
				a.probs = append(a.probs, nan)
			}
			continue
		}
		if revision := a.row(b, i); !slices.Contains(revisions, revision) {
			revisions = append(revisions, revision)
		}
	}
	values, err := arrowio.EncodeCalibratedParts(b, a.probs, arrowio.CalibratedOptions{
		TopClass:   a.cfg.Columns == "top1",
		Calibrator: strings.Join(revisions, ","),
		MaxBytes:   a.cfg.MaxBytes,
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

// row appends the probabilities of row i, and returns the revision that they are of.
func (a *Operator) row(b *arrowio.Batch, i int) string {
	z, p := a.z[:b.K], a.p[:b.K]
	for k, x := range b.Scores[i*b.K : (i+1)*b.K] {
		if b.Probs {
			x = float32(kernel.LogProb(x))
		}
		z[k] = float64(x)
	}
	m, _ := b.ModelOf(i)
	revision := "0"
	if f := a.cfg.Published.At(m, b.TS[i], b.K, b.RowID(i)); f != nil {
		f.Calibrator.Apply(p, z)
		if revision = strconv.Itoa(f.Revision); f.Share > 0 {
			revision += "-canary"
		}
	} else {
		calibrator.Identity{}.Apply(p, z)
	}
	for _, x := range p {
		a.probs = append(a.probs, float32(x))
	}
	return revision
}

// Advance implements pipeline.Operator.
func (a *Operator) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }

// State implements pipeline.Operator.
func (a *Operator) State() pipeline.State { return nil }
