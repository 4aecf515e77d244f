package main

import (
	"encoding/json"
	"path/filepath"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// data keeps the arrays of a folder.
type data struct {
	folder string
	arrays map[string]npy.Numbers
}

func (d *data) array(name string) (npy.Numbers, error) {
	if a, ok := d.arrays[name]; ok {
		return a, nil
	}
	a, err := npy.ReadFile(filepath.Join(d.folder, name+".npy"))
	if err != nil {
		return a, err
	}
	if d.arrays == nil {
		d.arrays = map[string]npy.Numbers{}
	}
	d.arrays[name] = a
	return a, nil
}

// inputs are the arrays of a request.
type inputs struct {
	scores npy.Numbers
	labels []int32
	values []float64
	// outcome is the labels as bool, for the tasks on confidence and correctness.
	outcome []bool
}

func (d *data) inputsOf(q request) (inputs, error) {
	in := inputs{values: q.Values}
	var err error
	if q.Scores != "" {
		if in.scores, err = d.array(q.Scores); err != nil {
			return in, err
		}
	}
	if q.Labels != "" {
		labels, err := d.array(q.Labels)
		if err != nil {
			return in, err
		}
		in.labels = labels.Int
	}
	if q.Task == "smece" || q.Task == "isotonic" {
		in.outcome = make([]bool, len(in.labels))
		for i, y := range in.labels {
			in.outcome[i] = y == 1
		}
	}
	return in, nil
}

func (in inputs) rows(probs bool) metric.Rows {
	return metric.Rows{K: in.scores.Columns(), F32: in.scores.F32, F64: in.scores.F64, Probs: probs, Labels: in.labels}
}

// results are made after the clock has stopped.
type results = func() map[string][]float64

// tasks are what is timed, each the one call that a user of the package would write.
var tasks = map[string]func(inputs) (results, error){
	"basic_logits": func(in inputs) (results, error) { return basic(in, false) },
	"basic_probs":  func(in inputs) (results, error) { return basic(in, true) },
	"temperature":  temperature,
	"smece": func(in inputs) (results, error) {
		v := metric.SmECE(in.scores.F64, in.outcome, nil)
		return func() map[string][]float64 { return map[string][]float64{"smece": {v}} }, nil
	},
	"isotonic":  isotonic,
	"dirichlet": dirichlet,
}

func basic(in inputs, probs bool) (results, error) {
	b, err := metric.Basic(in.rows(probs), metric.Options{})
	return func() map[string][]float64 {
		return map[string][]float64{"ece": {b.ECE}, "cwece": {b.CWECE}, "brier": {b.Brier}, "nll": {b.NLL}}
	}, err
}

func temperature(in inputs) (results, error) {
	c, report, err := calibrator.FitTemperature(calibrator.NewData(in.scores.F32, in.scores.Columns(), in.labels, nil),
		calibrator.Options{})
	return func() map[string][]float64 {
		return map[string][]float64{"t": {c.T()}, "nll": {report.NLLAfter}}
	}, err
}

// isotonic fits on confidences and outcomes, and gives its map at values.
func isotonic(in inputs) (results, error) {
	c, _, err := calibrator.FitIsotonicConfidence(in.scores.F64, in.outcome, nil)
	return func() map[string][]float64 {
		at := make([]float64, len(in.values))
		for i, v := range in.values {
			at[i] = c.Map(v)
		}
		return map[string][]float64{"map": at}
	}, err
}

// dirichlet has the penalties λ and μ as values; it gives W and b.
func dirichlet(in inputs) (results, error) {
	reg := calibrator.ODIR{OffDiagonal: in.values[0], Intercept: in.values[1]}
	c, report, err := calibrator.FitDirichlet(calibrator.NewData(in.scores.F64, in.scores.Columns(), in.labels, nil),
		reg,
		calibrator.Options{})
	return func() map[string][]float64 {
		var saved struct {
			Params struct {
				W []float64 `json:"w"`
				B []float64 `json:"b"`
			} `json:"params"`
		}
		b, err := calibrator.Encode(c)
		if err == nil {
			err = json.Unmarshal(b, &saved)
		}
		if err != nil {
			return nil
		}
		return map[string][]float64{"nll": {report.NLLAfter}, "w": saved.Params.W, "b": saved.Params.B}
	}, err
}
