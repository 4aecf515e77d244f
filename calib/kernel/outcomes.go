package kernel

import "fmt"

// Outcomes are what statistics add of labelled rows, an array for each number, with room for whole vectors of 8 rows:
//
//	Conf = p_(1),  Margin = p_(1) - p_(2),  NegEnt = 1 - H/ln K      each cut to [0,1]
//	P = p_y,  NLL = w·(LSE - z_y),  Brier = w·(Σp² - 2p_y + 1), cut at 0,  Hit = 1 where ŷ = y, else 0
//
// A negative y is a row without a label: Hit is 0, and P, NLL and Brier are those of some class.
type Outcomes struct {
	Conf, Margin, NegEnt, P, NLL, Brier []float64
	Hit                                 []uint16
}

// outcomeLanes is the number of rows in a vector.
const outcomeLanes = 8

// NewOutcomes returns arrays for n rows.
func NewOutcomes(n int) *Outcomes {
	n = (n + outcomeLanes - 1) &^ (outcomeLanes - 1)
	f := func() []float64 { return make([]float64, n) }
	return &Outcomes{Conf: f(), Margin: f(), NegEnt: f(), P: f(), NLL: f(), Brier: f(), Hit: make([]uint16, n)}
}

// LabelledRows are n rows of K classes with labels below K and weights. Y and W have room for whole vectors.
type LabelledRows struct {
	Rows []Row
	V, Z []float32 // n×K: what Row.Scale makes probabilities of, and the logits
	K    int
	Y    []int32
	W    []float64
	LnK  float64 // ln K
}

// Fill works out the outcomes. Of probabilities, with Z = V, NLL has no meaning; of rows that are not OK nothing is
// defined. It panics on shorter arrays.
func (o *Outcomes) Fill(in *LabelledRows) {
	n := len(in.Rows)
	room := (n + outcomeLanes - 1) &^ (outcomeLanes - 1)
	scores := n * in.K
	if len(o.Conf) < room || len(in.Y) < room || len(in.W) < room || len(in.V) != scores || len(in.Z) != scores {
		panic(fmt.Sprintf("kernel: outcomes of %d rows: %d and %d scores of %d classes, %d labels, %d weights, room "+
			"for %d",
			n, len(in.V), len(in.Z), in.K, len(in.Y), len(in.W), len(o.Conf)))
	}
	if n > 0 && !o.fill(in) {
		o.fillGo(in)
		return
	}
	for i := range in.Rows { // the vector path does not tell such rows apart
		if r := &in.Rows[i]; r.far() {
			o.NLL[i] = in.W[i] * r.LogitNLL(float64(in.Z[i*in.K+max(0, int(in.Y[i]))]))
		}
	}
}

func (o *Outcomes) fillGo(in *LabelledRows) {
	for i := range in.Rows {
		r, y, w := &in.Rows[i], int(in.Y[i]), in.W[i]
		o.Conf[i], o.Margin[i], o.NegEnt[i] = unit(r.Conf), unit(r.Conf-r.Second), unit(1-r.Entropy/in.LnK)
		at := i*in.K + max(0, y)
		p := min(float64(in.V[at])*r.Scale, 1)
		o.P[i] = p
		o.NLL[i] = w * r.LogitNLL(float64(in.Z[at]))
		o.Brier[i] = w * Brier(*r, p)
		o.Hit[i] = 0
		if r.Arg == y {
			o.Hit[i] = 1
		}
	}
}

// unit takes off what rounding put outside [0,1].
func unit(x float64) float64 { return max(0, min(x, 1)) }
