package oracle_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	second = int64(1e9)
	start  = 1769817600 * second
	absent = "\x00" // a slice column that is not there
)

// row is a prediction with its label.
type row struct {
	id, model, version string
	slices             [2]string
	ts, labelTS, sent  int64
	label              int32 // -1: never known
	scores, features   []float32
	probs, weighs      bool
	weight, served     float32
}

// stream is what the rows of a seed are drawn by.
type stream struct {
	rows      int
	step      int64
	models    []modelPlan
	phases    []phase
	maxLag    int64
	lateShare float64 // of labels, that come after the wait
	wait      int64
	columns   int // of slices
	values    int // of each column
	features  bool
	probs     bool
	weighs    bool
	gap       int64 // a pause in the middle
}

// modelPlan is a model: the version that serves changes at a share of the stream.
type modelPlan struct {
	name     string
	k        int
	versions []string
}

// phase is how the rows are from a share of the stream on.
type phase struct {
	from       float64
	sharpness  float64 // of the scores: 1 is calibrated
	wrong      float64 // share of labels that are drawn anew
	unlabelled float64
	tilt       float64 // of the classes' shares
	only       int     // the phase is that of this value of the first column; -1: of all rows
}

func (s *stream) draw(seed uint64) []row {
	r := rand.New(rand.NewPCG(seed, 77))
	rows := make([]row, s.rows)
	for i := range rows {
		rows[i] = s.row(r, fmt.Sprintf("%d-%d", seed, i), i)
	}
	return rows
}

func (s *stream) row(r *rand.Rand, id string, i int) row {
	at := float64(i) / float64(s.rows)
	m := s.models[r.IntN(len(s.models))]
	out := row{id: id, model: m.name, ts: start + int64(i)*s.step, probs: s.probs, weighs: s.weighs,
		slices: [2]string{absent, absent}}
	if at > .5 {
		out.ts += s.gap
	}
	// The versions follow each other, with some rows of the one before.
	v := int(at*float64(len(m.versions)) - .15*r.Float64())
	out.version = m.versions[max(0, min(v, len(m.versions)-1))]
	first := 0
	for c := range s.columns {
		n := s.value(r, at)
		if c == 0 {
			first = n
		}
		out.slices[c] = fmt.Sprintf("%c%d", 'a'+c, n)
		if r.IntN(50) == 0 {
			out.slices[c] = ""
		}
	}
	p := s.phase(at, first)
	s.classes(r, &out, m.k, p)
	out.sent = out.ts
	out.labelTS = out.ts + r.Int64N(s.maxLag+1)
	if r.Float64() < s.lateShare {
		out.labelTS += s.wait
	}
	out.weight, out.served = .5+r.Float32()/2, float32(math.NaN())
	if i%2 == 0 {
		out.served = r.Float32()
	}
	return out
}

// value draws the value of a slice column; which are frequent changes in the middle.
func (s *stream) value(r *rand.Rand, at float64) int {
	n := int(float64(s.values) * r.Float64() * r.Float64())
	if at > .6 {
		n = s.values - 1 - n
	}
	return n
}

func (s *stream) phase(at float64, value int) phase {
	p := s.phases[0]
	for _, q := range s.phases[1:] {
		if at >= q.from && (q.only < 0 || q.only == value) {
			p = q
		}
	}
	return p
}

// classes draws the class, and scores that are its log posterior but for a factor.
func (s *stream) classes(r *rand.Rand, out *row, k int, p phase) {
	const separation = 1.7
	y := r.IntN(k)
	if r.Float64() < p.tilt {
		y = 0
	}
	z := make([]float64, k)
	for j := range z {
		z[j] = separation * r.NormFloat64()
	}
	z[y] += separation * separation
	for j := range z {
		if s.features {
			out.features = append(out.features, float32(z[j]))
		}
		z[j] *= p.sharpness
	}
	if s.probs {
		softmax(z)
	}
	for _, x := range z {
		out.scores = append(out.scores, float32(x))
	}
	out.label = int32(y)
	if r.Float64() < p.wrong {
		out.label = int32(r.IntN(k))
	}
	if r.Float64() < p.unlabelled {
		out.label = -1
	}
}

func softmax(z []float64) {
	m, sum := slices.Max(z), 0.0
	for j := range z {
		z[j] = math.Exp(z[j] - m)
		sum += z[j]
	}
	for j := range z {
		z[j] /= sum
	}
}

// displace shuffles rows within blocks of n: what comes later than its neighbours is late.
func displace(rows []row, n int, r *rand.Rand) []row {
	out := slices.Clone(rows)
	for rest := out; len(rest) > 0; {
		b := rest[:min(n, len(rest))]
		r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		rest = rest[len(b):]
	}
	return out
}

// labelled returns the rows that have a label, in the order of its time.
func labelled(rows []row) []row {
	out := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.label < 0 })
	slices.SortStableFunc(out, func(a, b row) int { return cmp.Compare(a.labelTS, b.labelTS) })
	return out
}

// spoil makes some rows such that they are refused, or come twice.
func spoil(rows []row, r *rand.Rand) []row {
	var out []row
	for _, x := range rows {
		switch r.IntN(150) {
		case 0:
			x.scores = slices.Clone(x.scores)
			x.scores[0] = float32(math.NaN())
		case 1:
			x.ts += 48 * 3600 * second // too far ahead
		case 2:
			out = append(out, x)
		case 3:
			x.scores = append(slices.Clone(x.scores), 1) // another number of classes
		case 4:
			x.id = ""
		case 5:
			x.label += 100
		}
		out = append(out, x)
	}
	return out
}

// batches groups rows into runs of at most n that one message can carry.
func batches(rows []row, n int) (out [][]row) {
	for len(rows) > 0 {
		i := 1
		for i < len(rows) && i < n && alike(&rows[i], &rows[0]) {
			i++
		}
		out = append(out, rows[:i])
		rows = rows[i:]
	}
	return out
}

func alike(a, b *row) bool {
	return a.model == b.model && a.version == b.version && len(a.scores) == len(b.scores)
}
