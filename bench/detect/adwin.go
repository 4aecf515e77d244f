package main

import "math"

// bucket is a stretch of the window: its sum and its sum of squared deviations.
type bucket struct{ total, variance float64 }

// adwin is river.drift.ADWIN: an exponential histogram of the window, row i of which has at most five buckets of 2^i
// values, oldest first; every 32 values all cuts between buckets are tested.
type adwin struct {
	delta                  float64
	fired                  bool
	rows                   [][]bucket
	width, total, variance float64
	tick                   int
}

const (
	adwinClock   = 32
	adwinBuckets = 5
	adwinLeast   = 5 // values on either side of a cut
	adwinGrace   = 10
)

func (d *adwin) update(x float64) bool {
	if d.fired || d.rows == nil {
		*d = adwin{delta: d.delta, rows: make([][]bucket, 1, 24)}
	}
	d.insert(x)
	d.tick++
	if d.tick%adwinClock == 0 && d.width > adwinGrace {
		for d.shorten() {
			d.fired = true
		}
	}
	return d.fired
}

func (d *adwin) insert(x float64) {
	d.rows[0] = append(d.rows[0], bucket{total: x})
	d.width++
	if d.width > 1 {
		off := x - d.total/(d.width-1)
		d.variance += (d.width - 1) * off * off / d.width
	}
	d.total += x
	for i := 0; i < len(d.rows) && len(d.rows[i]) > adwinBuckets; i++ {
		if i+1 == len(d.rows) {
			d.rows = append(d.rows, nil)
		}
		n := math.Ldexp(1, i)
		a, b := d.rows[i][0], d.rows[i][1]
		off := a.total/n - b.total/n
		d.rows[i+1] = append(d.rows[i+1], bucket{a.total + b.total, a.variance + b.variance + n*n*off*off/(n+n)})
		d.rows[i] = append(d.rows[i][:0], d.rows[i][2:]...)
	}
}

// shorten tests the cuts from the oldest on, and drops the oldest bucket at the first that shows a change.
func (d *adwin) shorten() bool {
	n0, n1, u0, u1 := 0., d.width, 0., d.total
	for i := len(d.rows) - 1; i >= 0; i-- {
		n := math.Ldexp(1, i)
		for k, b := range d.rows[i] {
			n0, n1, u0, u1 = n0+n, n1-n, u0+b.total, u1-b.total
			if i == 0 && k == len(d.rows[0])-1 {
				return false
			}
			if n1 >= adwinLeast && n0 >= adwinLeast && d.differs(n0, n1, u0/n0-u1/n1) {
				d.drop()
				return true
			}
		}
	}
	return false
}

func (d *adwin) differs(n0, n1, difference float64) bool {
	log := math.Log(2 * math.Log(d.width) / d.delta)
	m := 1/(n0-adwinLeast+1) + 1/(n1-adwinLeast+1)
	return math.Abs(difference) > math.Sqrt(2*m*(d.variance/d.width)*log)+2./3*log*m
}

// drop takes the oldest bucket off the window.
func (d *adwin) drop() {
	last := len(d.rows) - 1
	n, b := math.Ldexp(1, last), d.rows[last][0]
	d.width -= n
	d.total -= b.total
	off := b.total/n - d.total/d.width
	d.variance -= b.variance + n*d.width*off*off/(n+d.width)
	if d.rows[last] = append(d.rows[last][:0], d.rows[last][1:]...); len(d.rows[last]) == 0 {
		d.rows = d.rows[:last]
	}
}
