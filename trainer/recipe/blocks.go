package recipe

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Validation rows are compared in blocks of time: rows that follow each other share what drifts, so that their errors
// are not independent, and the rows that a head will serve are of another time than those it was chosen on.
const (
	mostBlocks = 10
	blockRows  = 8 // at least, where there are rows for two blocks
)

// blocked is how validation rows are divided: their places by time, and where each block begins and ends.
type blocked struct {
	order []int32
	ends  []int
}

func blocksOf(valid *data.Set) (blocked, error) {
	n := valid.N()
	if n < 2 {
		return blocked{}, fmt.Errorf("%d validation rows, allowed at least 2", n)
	}
	b := blocked{order: valid.ByTime()}
	count := max(2, min(mostBlocks, n/blockRows))
	for i := range count {
		b.ends = append(b.ends, (i+1)*n/count)
	}
	return b, nil
}

// block is the places of a block's rows.
func (b blocked) block(i int) []int32 {
	from := 0
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.order[from:b.ends[i]]
}

// Why a temperature was refused.
const (
	refusedBound = "it ran into a bound"
	refusedBlock = "it does not lower the NLL of blocks of time that it was not fitted on"
	refusedTrain = "it is below 1 and raises the NLL of the newest training rows"
)

// logitRows is how many rows logitsOf takes at a time.
const logitRows = 1024

// logitsOf are the n×K logits of a set.
func logitsOf(h *head.Head, s *data.Set) []float32 {
	z := make([]float32, 0, s.N()*h.K())
	eachLogits(h, s, func(_ int, some []float32) { z = append(z, some...) })
	return z
}

// eachLogits calls f with the logits of some rows at a time, and the place of the first.
func eachLogits(h *head.Head, s *data.Set, f func(from int, z []float32)) {
	pass := head.NewPass(h, logitRows, head.Gonum{})
	var scratch []float32
	for from := 0; from < s.N(); from += logitRows {
		n := min(logitRows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		f(from, pass.Forward(h, scratch, n))
	}
}

// meanNLL is that of a head at a temperature; 0 without rows. The logits of all rows need not fit into memory.
func meanNLL(h *head.Head, s *data.Set, t float64) float64 {
	if s.N() == 0 {
		return 0
	}
	var sum float64
	k := h.K()
	eachLogits(h, s, func(from int, z []float32) {
		for i := range len(z) / k {
			v, _ := rowNLL(z[i*k:(i+1)*k], int(s.Y[from+i]), t)
			sum += v
		}
	})
	return sum / float64(s.N())
}

// scored is a head with its logits on the validation rows, and the NLLs of their blocks.
type scored struct {
	AutoScore
	blocked
	head   *head.Head
	k      int
	z      []float32
	y      []int32
	blocks []float64
	// trained is the mean NLL on askedRows.
	trained float64
}

// fewRows of a class say too little of it: a head that has given up a class that is hardly in the validation rows has
// the lower NLL there, and no block of them shows an error.
const fewRows = 5

// askedRows are the training rows that a new head must not be worse on: the newest, as many as validate, and before
// them until they have fewRows of every class of which fewer validate, or all. Where rows are mixed the first reason is
// void, and there are none unless a class is so rare.
func askedRows(in Input) *data.Set {
	valid, needed, rare := make([]int, in.Valid.K), map[int32]int{}, 0
	for _, y := range in.Valid.Y {
		valid[y]++
	}
	for _, y := range in.Train.Y {
		if valid[y] < fewRows && needed[y] < fewRows {
			needed[y]++
			rare++
		}
	}
	if in.Mixed && rare == 0 {
		return in.Train.Select(nil)
	}
	rows := in.Train.ByTime()
	from := len(rows)
	for from > 0 && (rare > 0 || len(rows)-from < in.Valid.N()) {
		from--
		if y := in.Train.Y[rows[from]]; needed[y] > 0 {
			needed[y]--
			rare--
		}
	}
	return in.Train.Select(rows[from:])
}

func score(name string, h *head.Head, valid *data.Set, b blocked) *scored {
	s := &scored{AutoScore: AutoScore{Name: name}, blocked: b, head: h, k: h.K(), z: logitsOf(h, valid), y: valid.Y}
	hits := 0
	for i := range s.y {
		if _, hit := rowNLL(s.row(int32(i)), int(s.y[i]), 1); hit {
			hits++
		}
	}
	s.Accuracy = float64(hits) / float64(len(s.y))
	return s
}

func (s *scored) row(i int32) []float32 { return s.z[int(i)*s.k : (int(i)+1)*s.k] }

// nll is the mean over a block at a temperature.
func (s *scored) nll(block int, t float64) float64 {
	var sum float64
	rows := s.block(block)
	for _, i := range rows {
		v, _ := rowNLL(s.row(i), int(s.y[i]), t)
		sum += v
	}
	return sum / float64(len(rows))
}

// fit is the temperature of all blocks but one; without is -1 for all.
func (s *scored) fit(without int) (t float64, bound bool, err error) {
	var z []float32
	var y []int32
	for b := range s.ends {
		if b == without {
			continue
		}
		for _, i := range s.block(b) {
			z, y = append(z, s.row(i)...), append(y, s.y[i])
		}
	}
	c, r, err := calibrator.FitTemperature(calibrator.NewData(z, s.k, y, nil), calibrator.Options{})
	return c.T(), r.OnBound, err
}

// asItIs scores the head without a temperature.
func (s *scored) asItIs() {
	s.Temperature, s.NLL, s.blocks = 1, 0, nil
	for b := range s.ends {
		s.blocks = append(s.blocks, s.nll(b, 1))
	}
	s.mean()
}

func (s *scored) mean() {
	s.NLL = 0
	for _, v := range s.blocks {
		s.NLL += v / float64(len(s.blocks))
	}
}

// temper fits a temperature on every block but one and measures it there. It is refused where one ran into a bound, or
// where the NLL of the blocks that it was not fitted on is not lower: then the head is scored as it is.
//
// A temperature below 1 makes a head surer than it learned to be. Where the time of the validation rows was an easy one
// that is dear later. So the gain must be shown beyond the errors of blocks, and the newest training rows must agree:
// they speak for such a temperature rather than against it, since the head was trained on them; where rows are mixed
// they are not asked.
func (s *scored) temper(in Input) error {
	s.asItIs()
	t, bound, err := s.fit(-1)
	if err != nil {
		return err
	}
	var tempered []float64
	for b := range s.ends {
		other, stuck, err := s.fit(b)
		if err != nil {
			return err
		}
		bound = bound || stuck
		tempered = append(tempered, s.nll(b, other))
	}
	gain := paired(tempered, s.blocks)
	switch {
	case bound:
		s.Refused = refusedBound
	case !gain.below(autoLevel) && (t < 1 || gain.Mean >= 0):
		s.Refused = refusedBlock
	case !in.Mixed && t < 1 && s.dearer(t, in):
		s.Refused = refusedTrain
	default:
		s.Temperature, s.blocks = t, tempered
		s.mean()
	}
	return nil
}

// dearer says whether a temperature raises the NLL of the training rows that are asked.
func (s *scored) dearer(t float64, in Input) bool {
	asked := askedRows(in)
	return meanNLL(s.head, asked, t) >= meanNLL(s.head, asked, 1)
}

// rowNLL is −ln softmax(z/t)_y, and whether y is the top class.
func rowNLL(z []float32, y int, t float64) (nll float64, hit bool) {
	top := 0
	for k, v := range z {
		if v > z[top] {
			top = k
		}
	}
	var rest float64
	for k, v := range z {
		if k != top {
			rest += math.Exp((float64(v) - float64(z[top])) / t)
		}
	}
	return math.Log1p(rest) + (float64(z[top])-float64(z[y]))/t, y == top
}

// Temperature is the best temperature of a head on the validation rows. It is refused, with the reason, where it ran
// into a bound, or where it does not lower the NLL of blocks of time that it was not fitted on: then it is 1.
func Temperature(h *head.Head, in Input) (t float64, refused string, err error) {
	s, err := assess("", h, in)
	if err != nil {
		return 1, "", err
	}
	return s.Temperature, s.Refused, nil
}

// Paired is the mean of differences of NLL by block, and its standard error.
type Paired struct {
	Mean float64 `json:"mean"`
	SE   float64 `json:"se"`

	blocks int
}

func paired(a, b []float64) Paired {
	n := float64(len(a))
	p := Paired{blocks: len(a)}
	for i := range a {
		p.Mean += (a[i] - b[i]) / n
	}
	var sum float64
	for i := range a {
		d := a[i] - b[i] - p.Mean
		sum += d * d
	}
	p.SE = math.Sqrt(sum / (n - 1) / n)
	return p
}

// rounding is how far the NLLs of heads that are the same but for the rounding of their weights may be apart.
const rounding = 1e-7

// below says whether the mean is below 0, by Student's one-sided test on blocks.
func (p Paired) below(level float64) bool {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(p.blocks - 1)}
	return p.Mean+t.Quantile(1-level)*p.SE < -rounding
}
