package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// key says what was tried.
type key struct {
	Setting string `json:"setting"`
	Method  string `json:"method"`
	Seed    uint64 `json:"seed"`
	Point   int    `json:"point"` // place in the method's grid
}

// trial is a line of the results.
type trial struct {
	key
	Commit string         `json:"commit"`
	Config *recipe.Config `json:"config,omitempty"`
	// Chosen is the recipe that auto took, or the best calibrator.
	Chosen string `json:"chosen,omitempty"`
	// Plain is the head of the epoch with the lowest validation NLL (of the last epoch for MaC-Cal), Tempered that of
	// the lowest NLL after a temperature, with that temperature.
	Plain    outcome `json:"plain"`
	Tempered outcome `json:"tempered"`
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"`
}

// outcome is what a head gave on the test rows, and how it was chosen.
type outcome struct {
	ValidNLL    float64 `json:"valid_nll"` // after the temperature, where there is one
	Temperature float64 `json:"temperature"`
	Epoch       int     `json:"epoch"`
	Q           float64 `json:"q,omitempty"`
	Accuracy    float64 `json:"accuracy"`
	ECE         float64 `json:"ece"`
	Floor       float64 `json:"ece_null"`
	ACE         float64 `json:"ace"`
	MCE         float64 `json:"mce"`
	CWECE       float64 `json:"cwece"`
	NLL         float64 `json:"nll"`
	AURC        float64 `json:"aurc"`
}

type job struct {
	setting setting
	method  method
	key     key
}

// products multiplies matrices, on one thread: jobs run side by side.
var products = sync.OnceValue(func() head.GEMM { return blas.Best(slog.Default(), 1) })

func (j job) run(s *source, commit string) trial {
	start := time.Now()
	t := trial{key: j.key, Commit: commit}
	p, err := j.setting.make(s, j.key.Seed)
	if err == nil {
		err = j.try(&t, p)
	}
	if err != nil {
		t.Error = err.Error()
	}
	t.Seconds = time.Since(start).Seconds()
	return t
}

func (j job) try(t *trial, p problem) error {
	switch j.method.kind {
	case unchanged, temperature:
		var err error
		t.Plain, err = rate(logitsOf(p.in.Current, p.test), p.test.Y)
		if err == nil && j.method.kind == temperature {
			var c calibrator.Temperature
			if c, _, err = fitTemperature(p.in.Current, p.cal); err == nil {
				t.Plain, err = ratedAt(p.in.Current, p.test, c.T())
			}
		}
		t.Tempered = t.Plain
		return err
	case bestCalibrator:
		return t.calibrate(p)
	case auto:
		h, r, err := recipe.RunAuto(context.Background(), recipe.Candidates(j.key.Seed), p.in,
			backend.Go{GEMM: products()})
		if err != nil {
			return err
		}
		t.Chosen = r.Chosen
		t.Plain, err = ratedAt(h, p.test, 1)
		t.Tempered = t.Plain
		return err
	}
	c := j.method.grid[j.key.Point]
	c.Seed = j.key.Seed
	t.Config = &c
	return t.train(c, p, j.method.refit)
}

// train runs the training twice where epochs are chosen: by NLL, and by NLL after a temperature. With again the head
// that is measured is that of a training with the validation rows, the temperature that of the one without.
func (t *trial) train(c recipe.Config, p problem, again bool) error {
	h, last, r, err := trainings(c, p.in, again)
	if err != nil {
		return err
	}
	if t.Plain, err = ratedAt(last, p.test, 1); err != nil {
		return err
	}
	t.Plain.note(r)
	if !c.KeepLast {
		c.Tempered = true
		if h, last, r, err = trainings(c, p.in, again); err != nil {
			return err
		}
	}
	fitted, report, err := fitTemperature(h, p.in.Valid)
	if err != nil {
		return err
	}
	if t.Tempered, err = ratedAt(last, p.test, fitted.T()); err != nil {
		return err
	}
	t.Tempered.note(r)
	t.Tempered.ValidNLL = report.NLLAfter
	return nil
}

// trainings returns the head that is chosen by, and the one that is measured.
func trainings(c recipe.Config, in recipe.Input, again bool) (chosen, measured *head.Head, r recipe.Report, err error) {
	b := backend.Go{GEMM: products()}
	if chosen, r, err = recipe.Run(context.Background(), c, in, b, nil); err != nil || !again {
		return chosen, chosen, r, err
	}
	measured, err = recipe.Refit(context.Background(), c, in, r.Best, b)
	return chosen, measured, r, err
}

// note takes from the report what the head was chosen by.
func (o *outcome) note(r recipe.Report) {
	o.Epoch, o.ValidNLL = r.Best, r.Before.NLL
	if r.Best > 0 {
		e := r.Epochs[r.Best-1]
		o.ValidNLL, o.Q = e.Valid.NLL, e.Q
	}
}

// fitTemperature is the temperature of a head on rows.
func fitTemperature(h *head.Head, rows *data.Set) (calibrator.Temperature, calibrator.FitReport, error) {
	d := calibrator.NewData(logitsOf(h, rows), rows.K, rows.Y, nil)
	return calibrator.FitTemperature(d, calibrator.Options{})
}

func ratedAt(h *head.Head, test *data.Set, temperature float64) (outcome, error) {
	z := logitsOf(h, test)
	for i := range z {
		z[i] = float32(float64(z[i]) / temperature)
	}
	o, err := rateRows(metric.Rows{K: test.K, F32: z, Labels: test.Y})
	o.Temperature = temperature
	return o, err
}

func rate(z []float32, y []int32) (outcome, error) {
	return rateRows(metric.Rows{K: classes, F32: z, Labels: y})
}

func rateRows(rows metric.Rows) (outcome, error) {
	r, err := metric.Evaluate(rows, metric.Options{Resamples: 200})
	return outcome{Temperature: 1, Accuracy: r.Accuracy, ECE: r.ECE, Floor: r.ECENull, ACE: r.ACE, MCE: r.MCE,
		CWECE: r.CWECE, NLL: r.NLL, AURC: r.AURC}, err
}

// logitRows is how many rows logitsOf takes at a time.
const logitRows = 1000

// logitsOf are the n×K logits of a set.
func logitsOf(h *head.Head, s *data.Set) []float32 {
	pass, z := head.NewPass(h, logitRows, products()), make([]float32, 0, s.N()*h.K())
	var scratch []float32
	for from := 0; from < s.N(); from += logitRows {
		n := min(logitRows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		z = append(z, pass.Forward(h, scratch, n)...)
	}
	return z
}

var errNoCalibrator = errors.New("no calibrator could be fitted")
