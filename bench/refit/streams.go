package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// The length of a stream in its own calendar: a day of rows is what a refit by period sees, a week what the schedule
// does.
const (
	dayRows  = 1400
	weekRows = 7 * dayRows
)

// paneRows is the number of rows of a pane: of 10 seconds, so 10 rows a second.
var paneRows = 100

// stream is rows in the order in which they come.
type stream struct {
	name     string
	drifting bool
	rare     bool // a class is
	k        int
	z        []float32
	labels   []int32
	changes  []int // rows at which the stream becomes another one; none where it does so gradually
}

// recipe makes a stream when it is its turn: all at once would be gigabytes.
type recipe struct {
	name     string
	drifting bool
	make     func() (*stream, error)
}

// changesIn reports whether the stream becomes another one within some rows.
func (s *stream) changesIn(from, to int) bool {
	return slices.ContainsFunc(s.changes, func(row int) bool { return row >= from && row < to })
}

func (s *stream) rows() int { return len(s.labels) }

// add appends row i of a source.
func (s *stream) add(from *source, i int, label int32) {
	s.z = append(s.z, from.z[i*from.k:(i+1)*from.k]...)
	s.labels = append(s.labels, label)
}

// walk hands out the rows of a source in a random order, each as often as every other.
type walk struct {
	r    *rand.Rand
	n    int
	left []int
}

func (w *walk) next() int {
	if len(w.left) == 0 {
		w.left = w.r.Perm(w.n)
	}
	i := w.left[len(w.left)-1]
	w.left = w.left[:len(w.left)-1]
	return i
}

// mix is a stream of several sources with their real labels.
type mix struct {
	name    string
	seed    uint64
	rows    int
	gradual bool
	sources []*source
	which   func(r *rand.Rand, t float64) int // source of the row at the share t of the stream
}

func (m *mix) streamOf() *stream {
	r := rand.New(rand.NewPCG(m.seed, 1))
	s := &stream{name: m.name, drifting: true, k: m.sources[0].k}
	walks := make([]walk, len(m.sources))
	for i := range walks {
		walks[i] = walk{r: r, n: m.sources[i].rows()}
	}
	last := 0
	for t := range m.rows {
		j := m.which(r, float64(t)/float64(m.rows))
		if j != last && !m.gradual {
			s.changes = append(s.changes, t)
		}
		last = j
		i := walks[j].next()
		s.add(m.sources[j], i, m.sources[j].labels[i])
	}
	return s
}

func step(on bool) int {
	if on {
		return 1
	}
	return 0
}

// resampled draws the labels of a stream from softmax(z/T) with the source's own best T, so that nothing ever changes;
// where it is to be calibrated, its logits are divided by T too.
func resampled(src *source, seed uint64, rows int, calibrated bool) (*stream, error) {
	t, _, err := calibrator.FitTemperature(calibrator.NewData(src.z, src.k, src.labels, nil), calibrator.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.name, err)
	}
	name := src.name + " as it is"
	z := src.z
	if calibrated {
		name = src.name + " calibrated"
		z = make([]float32, len(src.z))
		for i, x := range src.z {
			z[i] = float32(float64(x) / t.T())
		}
	}
	shown := &source{src.name, z, src.k, src.labels}
	r := rand.New(rand.NewPCG(seed, 2))
	s := &stream{name: name, k: src.k}
	w := walk{r: r, n: src.rows()}
	row, p := make([]float64, src.k), make([]float64, src.k)
	for range rows {
		i := w.next()
		for j := range row {
			row[j] = float64(src.z[i*src.k+j])
		}
		t.Apply(p, row)
		s.add(shown, i, draw(r, p))
	}
	return s, nil
}

func draw(r *rand.Rand, p []float64) int32 {
	u := r.Float64()
	for j, x := range p {
		if u -= x; u < 0 {
			return int32(j)
		}
	}
	best := 0
	for j := range p {
		if p[j] > p[best] || math.IsNaN(p[best]) {
			best = j
		}
	}
	return int32(best)
}
