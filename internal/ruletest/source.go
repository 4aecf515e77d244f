package ruletest

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/feed"
)

// ruleSource makes the rows of a case: the same for the same seed.
type ruleSource struct {
	test    *Test
	columns []string
	rng     *rand.Rand
	part    int // of test.Rows
	i       int // row of the part
	z       []float64
	scores  []float32
	values  []string
}

func newRuleSource(t *Test, columns []string) *ruleSource {
	return &ruleSource{
		test:    t,
		columns: columns,
		rng:     rand.New(rand.NewPCG(t.Seed, 1)),
		z:       make([]float64, t.Classes),
		scores:  make([]float32, t.Classes),
		values:  make([]string, len(columns)),
	}
}

// Schema implements feed.Source.
func (s *ruleSource) Schema() feed.Fields {
	return feed.Fields{Model: s.test.Model, Version: s.test.Version, K: s.test.Classes, Slices: s.columns}
}

// Next implements feed.Source.
func (s *ruleSource) Next(row *feed.Row) error {
	if s.part < len(s.test.Rows) && s.i >= s.test.Rows[s.part].Count {
		s.part, s.i = s.part+1, 0
	}
	if s.part >= len(s.test.Rows) {
		return io.EOF
	}
	r := &s.test.Rows[s.part]
	meant := s.slices(r)
	*row = feed.Row{Scores: s.scores, Weight: 1, Slices: s.values, Served: float32(math.NaN())}
	if r.Confidence > 0 && meant {
		row.Label = s.exact(r)
	} else {
		row.Label = s.drawn(r, meant)
	}
	if i := float64(s.i); math.Floor((i+1)*r.Unlabelled+1e-9) > math.Floor(i*r.Unlabelled+1e-9) {
		row.Label = -1
	}
	if r.Delay != "" { // 0 would be the delay of the case
		row.LabelAfter = max(1, arrowio.Time(r.delayMin)+arrowio.Time(s.rng.Float64()*float64(r.delayMax-r.delayMin)))
	}
	s.i++
	return nil
}

// slices gives the row its cohort values, each column's in turn, and reports whether the row is one that Only means.
func (s *ruleSource) slices(r *Rows) bool {
	meant := true
	turn := s.i
	for c, column := range s.columns {
		s.values[c] = ""
		if values := r.Slices[column]; len(values) > 0 {
			s.values[c] = values[turn%len(values)]
			turn /= len(values)
		}
	}
	for column, value := range r.Only {
		c := slices.Index(s.columns, column)
		meant = meant && c >= 0 && s.values[c] == value
	}
	return meant
}

// exact is a row of one confidence: of every hundred the first are right.
func (s *ruleSource) exact(r *Rows) int32 {
	top := s.rng.IntN(len(s.scores))
	rest := math.Log((1 - r.Confidence) / float64(len(s.scores)-1))
	for j := range s.scores {
		s.scores[j] = float32(rest)
	}
	s.scores[top] = float32(math.Log(r.Confidence))
	// Spread over the hundred: row i is right where the number of right ones up to it rises.
	k := float64(s.i % 100)
	if math.Floor((k+1)**r.Accuracy+1e-9) > math.Floor(k**r.Accuracy+1e-9) {
		return int32(top)
	}
	return int32((top + 1) % len(s.scores))
}

// drawn is a row of random logits, its label drawn from their softmax.
func (s *ruleSource) drawn(r *Rows, meant bool) int32 {
	total, sharpness := 0.0, 1.0
	if meant {
		sharpness = r.Sharpness
	}
	for j := range s.z {
		z := 2 * s.rng.NormFloat64()
		s.scores[j] = float32(sharpness * z)
		s.z[j] = math.Exp(z)
		total += s.z[j]
	}
	u, label := s.rng.Float64()*total, 0
	for ; label < len(s.z)-1 && u >= s.z[label]; label++ {
		u -= s.z[label]
	}
	if s.rng.Float64() < r.Wrong && meant {
		label = (label + 1 + s.rng.IntN(len(s.z)-1)) % len(s.z)
	}
	return int32(label)
}
