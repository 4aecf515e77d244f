package kernel

import "math"

const (
	// EdgeTolerance is how far, relative to an edge, a probability of LogitRows may lie from it and yet be on its other
	// side in float64: their relative error, 1e-6, and a tenth more.
	EdgeTolerance = 1.1e-6
	// EdgeCells is the number of equal cells of (0,1] whose edges Settle knows. The edges of 2, 3, …, 10, 12, 15, 16,
	// 18, 20, 24, 25, 30, … bins are among them.
	EdgeCells = 3600
)

// BesideEdge says whether p in [0,1] lies within EdgeTolerance of one of the edges 1/m, …, (m-1)/m, or on it.
func BesideEdge(p float64, m int) bool {
	x := p * float64(m)
	i := float64(int(x + 0.5))
	return math.Abs(x-i) < EdgeTolerance*i && i < float64(m)
}

// Settle replaces Conf and Second by the values of Logits or Probs, to the last bit, if Conf is beside an edge of
// EdgeCells cells: every accumulator then puts the row into the bin in which float64 has it, and all of them see one
// number. All else, Scale too, stays. r is a row of LogitRows at temperature 1, or of ProbRows, and scores are what it
// was made of. It concerns fewer than one row in 120 (of logits), which costs K exponentials.
func (r *Row) Settle(scores []float32, probs bool) {
	if r.OK && BesideEdge(r.Conf, EdgeCells) {
		x := Exact{Row: r, Scores: scores, Probs: probs}
		x.settle()
	}
}

// SettleAt is Settle for the edges of m cells.
func (r *Row) SettleAt(m int, scores []float32, probs bool) {
	if r.OK && BesideEdge(r.Conf, m) {
		x := Exact{Row: r, Scores: scores, Probs: probs}
		x.settle()
	}
}

func (x *Exact) settle() {
	r := x.Row
	if x.Probs && r.Scale == 1 {
		return // they are
	}
	x.sum()
	if x.Probs {
		r.Conf, r.Second = float64(x.Scores[r.Arg])/x.s, x.second/x.s
		return
	}
	r.Conf, r.Second = x.s, float64(x.second*x.s)
}

// Exact gives probabilities of a float32 row as Logits or Probs has them, to the last bit, for the few that lie beside
// an edge. Row is of LogitRows at temperature 1, or of ProbRows, and Scores are what it was made of. The first Prob
// costs K exponentials, each one more.
type Exact struct {
	Row    *Row
	Scores []float32
	Probs  bool

	s      float64 // the largest probability, or of probabilities what they are divided by; 0 before it is needed
	second float64 // second of the terms
}

// Prob returns the probability of class k.
func (x *Exact) Prob(k int) float64 {
	if x.Probs {
		if x.Row.Scale == 1 {
			return float64(x.Scores[k])
		}
		x.sum()
		return float64(x.Scores[k]) / x.s
	}
	x.sum()
	return exp(float64(x.Scores[k])-x.Row.Max) * x.s
}

// Beside returns p, the probability of class k, unless it is beside an edge of m bins: then Prob of the class.
func (x *Exact) Beside(p float64, k, m int) float64 {
	if BesideEdge(p, m) {
		return x.Prob(k)
	}
	return p
}

// sum adds in the order of Logits and Probs.
func (x *Exact) sum() {
	if x.s != 0 {
		return
	}
	var e [expChunk]float64
	sum, second := 0.0, 0.0
	for at := 0; at < len(x.Scores); at += expChunk {
		part := x.Scores[at:min(at+expChunk, len(x.Scores))]
		x.terms(&e, part)
		arg, largest := x.Row.Arg-at, 0.0
		if arg >= 0 && arg < len(part) {
			largest, e[arg] = e[arg], 0 // of logits it is left out of the sum
		}
		for j, v := range e[:len(part)] {
			second = max(second, v)
			if x.Probs && j == arg {
				v = largest
			}
			sum += v
		}
	}
	x.second = second
	x.s = sum
	if !x.Probs {
		x.s = 1 / (1 + sum)
	}
}

// expChunk is how many terms are worked out at a time.
const expChunk = 64

// terms are those that sum adds for some scores.
func (x *Exact) terms(e *[expChunk]float64, scores []float32) {
	if x.Probs {
		for j, v := range scores {
			e[j] = float64(v)
		}
		return
	}
	for j := expRow(e[:], scores, x.Row.Max); j < len(scores); j++ {
		e[j] = exp(float64(scores[j]) - x.Row.Max)
	}
}

// Underflows says whether a class of logit z has probability 0 in float64: LogitRows leaves e = 0 for others too.
func (r *Row) Underflows(z float32) bool {
	d := float64(z) - r.Max
	return d < -700 && exp(d)*r.Conf == 0
}

// EachZero calls f with every class whose e is 0 and whose probability is 0 in float64, in ascending order.
func (x *Exact) EachZero(e []float32, f func(k int)) {
	if x.Probs {
		for k, v := range e {
			if v == 0 {
				f(k)
			}
		}
		return
	}
	certain := float32(x.Row.Max - 700)
	for k, z := range x.Scores {
		if z < certain && x.Row.Underflows(z) {
			f(k)
		}
	}
}
