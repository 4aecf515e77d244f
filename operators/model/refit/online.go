package refit

import (
	"math"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// online is how the followed top confidence does, for snapshots.
type online struct {
	forecasts *forecasts // nil = none yet, or packed
	packed    []byte     // while the version is new
}

// forecasts are the followed top confidences of a version's sampled rows in order. Each row is forecast before its
// label is used.
type forecasts struct {
	rows int64
	loss float64 // Σ log loss of the forecasts
	bins [eceBins]metric.Bin
	// cells hold the rows by log-odds. They give the best fixed map in hindsight.
	cells [onlineCells]oddsCell
}

// onlines packs those of new versions.
var onlines stage.Packer

type oddsCell struct {
	n, hits int64
	sum     float64 // Σ ℓ
}

// onlineClip is the default clip of calibrator.OnlinePlatt; its log-odds are within ±ln((1-clip)/clip). A cell is about
// 1/14 wide. Using a cell's mean changes the loss of a row by at most a²/8·(1/28)², which is 2e-4 nats at slope a = 1.
const (
	onlineClip  = 1e-4
	onlineCells = 256
)

var onlineReach = math.Log((1 - onlineClip) / onlineClip)

// step takes a pane's rows. What is kept of a version that is new is packed.
func (o *online) step(rows []followedRow, isNew bool) {
	if len(rows) == 0 {
		return
	}
	f := o.now()
	for i := range rows {
		f.take(rows[i].conf, rows[i].told, rows[i].hit)
	}
	if *o = (online{forecasts: f}); isNew {
		*o = online{packed: onlines.Pack(f.append(nil))}
	}
}

// now is the forecasts, packed or not.
func (o *online) now() *forecasts {
	if o.forecasts != nil {
		return o.forecasts
	}
	f := &forecasts{}
	if o.packed != nil {
		r := binenc.NewReader(onlines.Unpack(o.packed))
		if err := f.restore(&r); err != nil {
			panic("refit: " + err.Error()) // what this process has packed itself
		}
	}
	return f
}

func (o *online) append(dst []byte) []byte {
	some := o.forecasts != nil || o.packed != nil
	if dst = append(dst, binenc.Flags(some)); some {
		return o.now().append(dst)
	}
	return dst
}

func (o *online) restore(r *binenc.Reader) error {
	if r.Byte() != 1 {
		return nil
	}
	o.forecasts = &forecasts{}
	return o.forecasts.restore(r)
}

// take counts a row of a top confidence, and what was told of it.
func (o *forecasts) take(conf, told float64, hit bool) {
	b := &o.bins[metric.BinIndex(told, eceBins)]
	c := min(max(conf, onlineClip), 1-onlineClip)
	l := math.Log(c / (1 - c))
	cell := &o.cells[min(max(int((l/onlineReach+1)/2*onlineCells), 0), onlineCells-1)]
	cell.n++
	cell.sum += l
	b.N++
	b.W++
	b.SumC += told
	if hit {
		b.SumA++
		cell.hits++
		o.loss -= logProb(told)
	} else {
		o.loss -= logProb(1 - told)
	}
	o.rows++
}

// logProb returns the logarithm of a probability. Its floor is the smallest distance from 1 that a float64 can express.
func logProb(p float64) float64 { return math.Log(max(p, 0x1p-53)) }

// bestFixed returns the least Σ log loss of a fixed map σ(aℓ + b) in hindsight, and its slope and intercept. It uses
// Newton's method on the cells and halves steps that do not reduce the loss.
func (o *forecasts) bestFixed() (loss, a, b float64) {
	a = 1
	loss = o.fixedLoss(a, b)
	const steps = 50
	for range steps {
		var g0, g1, h00, h01, h11 float64
		for i := range o.cells {
			c := &o.cells[i]
			if c.n == 0 {
				continue
			}
			n := float64(c.n)
			l := c.sum / n
			p := 1 / (1 + math.Exp(-(a*l + b)))
			r, h := n*p-float64(c.hits), n*p*(1-p)
			g0, g1 = g0+r*l, g1+r
			h00, h01, h11 = h00+h*l*l, h01+h*l, h11+h
		}
		const ridge = 1e-9 // with a single value of the log-odds the slope is undetermined
		det := (h00+ridge)*(h11+ridge) - h01*h01
		if !(det > 0) {
			break
		}
		d0, d1 := ((h11+ridge)*g0-h01*g1)/det, ((h00+ridge)*g1-h01*g0)/det
		step := 1.0
		next := o.fixedLoss(a-step*d0, b-step*d1)
		for ; !(next <= loss) && step > 1e-6; next = o.fixedLoss(a-step*d0, b-step*d1) {
			step /= 2
		}
		if !(next < loss-1e-12*loss) {
			break
		}
		a, b, loss = a-step*d0, b-step*d1, next
	}
	return loss, a, b
}

func (o *forecasts) fixedLoss(a, b float64) (loss float64) {
	for i := range o.cells {
		c := &o.cells[i]
		if c.n == 0 {
			continue
		}
		p := 1 / (1 + math.Exp(-(a*c.sum/float64(c.n) + b)))
		loss -= float64(c.hits)*logProb(p) + float64(c.n-c.hits)*logProb(1-p)
	}
	return loss
}

// shown returns the online part of a snapshot; nil before the first row.
func (o *forecasts) shown(served servedCorrection) *record.Online {
	if o.rows == 0 {
		return nil
	}
	n := float64(o.rows)
	best, a, b := o.bestFixed()
	top, from := served.correction, record.Time{}
	if served.from != 0 {
		from = record.At(served.from)
	}
	return &record.Online{Rows: o.rows, EffectiveFrom: from, Power: shownPower(top.Power), Slope: top.Slope,
		Intercept: top.Intercept, ECE: metric.ECE(o.bins[:]), LogLoss: o.loss / n, Regret: (o.loss - best) / n,
		BestFixed: record.FixedPlatt{Slope: a, Intercept: b, LogLoss: best / n}}
}

func (o *forecasts) append(dst []byte) []byte {
	dst = binenc.AppendFloat64(binenc.AppendVarint(dst, o.rows), o.loss)
	for i := range o.bins {
		b := &o.bins[i]
		dst = binenc.AppendFloat64s(binenc.AppendVarint(dst, b.N), b.SumC, b.SumA)
	}
	for i := range o.cells {
		c := &o.cells[i]
		dst = binenc.AppendFloat64(binenc.AppendVarint(binenc.AppendVarint(dst, c.n), c.hits), c.sum)
	}
	return dst
}

func (o *forecasts) restore(r *binenc.Reader) error {
	o.rows, o.loss = r.Varint(), r.Float64()
	for i := range o.bins {
		b := &o.bins[i]
		b.N = r.Varint()
		b.W = float64(b.N)
		readFloats(r, &b.SumC, &b.SumA)
	}
	for i := range o.cells {
		c := &o.cells[i]
		c.n, c.hits, c.sum = r.Varint(), r.Varint(), r.Float64()
	}
	return r.Err()
}
