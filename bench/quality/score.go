package main

import (
	"math/rand/v2"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// key says what was measured.
type key struct {
	Model  string `json:"model"`
	Split  int    `json:"split"`
	Method string `json:"method"`
	Rows   int    `json:"rows"` // fitted on so many; 0 is the whole half
}

// score is a method on the half that it has not seen. Kept is the share of rows that Meta-Cal keeps, KeptAccuracy the
// accuracy on these, Missed the share of right rows that it gives up, Target what it was told to reach.
type score struct {
	key
	ECE          float64 `json:"ece"`
	CWECE        float64 `json:"cwece"`
	NLL          float64 `json:"nll"`
	Accuracy     float64 `json:"accuracy"`
	Kept         float64 `json:"kept,omitempty"`
	KeptAccuracy float64 `json:"kept_accuracy,omitempty"`
	Missed       float64 `json:"missed,omitempty"`
	Target       float64 `json:"target,omitempty"`
	Error        string  `json:"error,omitempty"`
}

type job struct {
	model  *model
	split  int
	method string
	rows   int
}

func (j job) keyOf() key { return key{j.model.name, j.split, j.method, j.rows} }

// half returns the rows of the fitted or of the tested half, in the order of a permutation that depends on the split
// alone: the splits of all models of a test set are the same.
func (m *model) half(split int, tested bool, most int) (z []float32, y []int32) {
	order := rand.New(rand.NewPCG(uint64(split), 1)).Perm(len(m.labels))
	cut := len(order) / 2
	rows := order[:cut]
	if tested {
		rows = order[cut:]
	} else if most > 0 {
		rows = rows[:most]
	}
	for _, i := range rows {
		z, y = append(z, m.z[i*m.k:(i+1)*m.k]...), append(y, m.labels[i])
	}
	return z, y
}

// run fits and measures; a fit that is refused becomes a score with its error.
func (j job) run() score {
	s := score{key: j.keyOf()}
	if err := j.measure(&s); err != nil {
		s.Error = err.Error()
	}
	return s
}

func (j job) measure(s *score) error {
	m := j.model
	z, y := m.half(j.split, false, j.rows)
	c, _, err := calibrator.Fit(j.method, calibrator.NewData(z, m.k, y, nil), calibrator.Options{Probs: m.probs})
	if err != nil {
		return err
	}
	z, y = m.half(j.split, true, 0)
	p := make([]float64, len(z))
	if err := calibrator.ApplyRows(c, p, z, m.k, m.probs); err != nil {
		return err
	}
	b, err := metric.Basic(metric.Rows{K: m.k, F64: p, Probs: true, Labels: y}, metric.Options{})
	if err != nil {
		return err
	}
	s.ECE, s.CWECE, s.NLL, s.Accuracy = b.ECE, b.CWECE, b.NLL, b.Accuracy
	if meta, ok := c.(*calibrator.MetaCal); ok && !m.probs {
		s.kept(meta, z, y, m.k)
	}
	return nil
}

// kept counts what Meta-Cal's threshold does, on logits.
func (s *score) kept(c *calibrator.MetaCal, z []float32, y []int32, k int) {
	row, p := make([]float64, k), make([]float64, k)
	var kept, right, keptRight float64
	for i, label := range y {
		for j := range row {
			row[j] = float64(z[i*k+j])
		}
		r, _ := kernel.Logits(row, p)
		hit := r.Arg == int(label)
		if hit {
			right++
		}
		if c.Accepts(row) {
			if kept++; hit {
				keptRight++
			}
		}
	}
	n := float64(len(y))
	s.Kept, s.KeptAccuracy, s.Missed = kept/n, keptRight/max(kept, 1), 1-keptRight/max(right, 1)
	_, s.Target = c.Bound()
}
