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

// Fill works out the outcomes of rows of k classes: v and z are n×k, what Row.Scale makes probabilities of and logits
// (of probabilities Fill makes no NLL that has a meaning); y their labels, below k; w their weights; lnK is ln k.
// y and w have room for whole vectors too. Of rows that are not OK nothing is defined. It panics on shorter arrays.
func (o *Outcomes) Fill(rows []Row, v, z []float32, k int, y []int32, w []float64, lnK float64) {
	n := len(rows)
	room := (n + outcomeLanes - 1) &^ (outcomeLanes - 1)
	if len(o.Conf) < room || len(y) < room || len(w) < room || len(v) != n*k || len(z) != n*k {
		panic(fmt.Sprintf("kernel: outcomes of %d rows: %d and %d scores of %d classes, %d labels, %d weights, room for %d",
			n, len(v), len(z), k, len(y), len(w), len(o.Conf)))
	}
	if n > 0 && !o.fill(rows, v, z, k, y, w, lnK) {
		o.fillGo(rows, v, z, k, y, w, lnK)
	}
}

func (o *Outcomes) fillGo(rows []Row, v, z []float32, k int, y []int32, w []float64, lnK float64) {
	for i := range rows {
		r, label := &rows[i], max(0, int(y[i]))
		o.Conf[i], o.Margin[i], o.NegEnt[i] = unit(r.Conf), unit(r.Conf-r.Second), unit(1-r.Entropy/lnK)
		p := min(float64(v[i*k+label])*r.Scale, 1)
		o.P[i] = p
		o.NLL[i] = w[i] * (r.LSE - float64(z[i*k+label]))
		o.Brier[i] = w[i] * Brier(*r, p)
		o.Hit[i] = 0
		if r.Arg == int(y[i]) {
			o.Hit[i] = 1
		}
	}
}

// unit takes off what rounding put outside [0,1].
func unit(x float64) float64 { return max(0, min(x, 1)) }
