package main

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// Windows of the mean ECE. The excess is over what a perfectly calibrated model shows in the same bins.
const (
	windowRows = dayRows
	bins       = 15
)

// scored is what a policy's calibrators made of a stream, each row by the one in force.
type scored struct {
	Excess float64 `json:"excess"` // mean over the windows of ECE - its null expectation
	ECE    float64 `json:"ece"`    // mean over the windows
	NLL    float64 `json:"nll"`
}

// apply scores row i by a calibrator, nil the identity. The NLL is that of tests: probabilities are floored, where no
// class is rare.
func apply(s *stream, i int, cal calibrator.Calibrator, z, p []float64) (nll, conf float64, hit bool) {
	for j := range z {
		z[j] = float64(s.z[i*s.k+j])
	}
	if cal == nil {
		cal = calibrator.Identity{}
	}
	cal.Apply(p, z)
	r, _ := kernel.Probs(p, z)
	y := int(s.labels[i])
	floor := 1 / (100 * float64(s.k))
	if s.rare {
		floor = 1e-12
	}
	return -math.Log(max(p[y], floor)), r.Conf, r.Arg == y
}

func score(s *stream, changes []change) scored {
	var out scored
	z, p := make([]float64, s.k), make([]float64, s.k)
	var cal calibrator.Calibrator
	windows := 0.0
	for from := 0; from < s.rows(); from += windowRows {
		to := min(from+windowRows, s.rows())
		conf, hit := make([]float64, 0, windowRows), make([]bool, 0, windowRows)
		for i := from; i < to; i++ {
			for len(changes) > 0 && changes[0].row <= i {
				cal, changes = changes[0].cal, changes[1:]
			}
			nll, c, h := apply(s, i, cal, z, p)
			out.NLL += nll / float64(s.rows())
			conf, hit = append(conf, c), append(hit, h)
		}
		b := metric.EqualWidth(conf, hit, nil, bins)
		ece := metric.ECE(b)
		out.ECE += ece
		out.Excess += ece - metric.Resample(b, 50, uint64(from)).Null
		windows++
	}
	out.ECE /= windows
	out.Excess /= windows
	return out
}

// toRaw is what a policy lost to the raw scores.
type toRaw struct {
	most    float64 // nats, in total, at the row at which that is largest
	returns int     // of the identity, for that
}

// lostBy is the most nats that following loses to what was published, from any row to any later one.
func lostBy(s *stream, ours course) (most float64) {
	_, _, with := servedRows(s, ours.followed)
	_, _, without := servedRows(s, ours.published)
	sum := 0.0
	for i := range with {
		sum = max(0, sum+with[i]-without[i])
		most = max(most, sum)
	}
	return most
}

func lost(s *stream, changes []change) (out toRaw) {
	z, p, sum := make([]float64, s.k), make([]float64, s.k), 0.0
	var cal calibrator.Calibrator
	for i := range s.rows() {
		for len(changes) > 0 && changes[0].row <= i {
			out.returns += step(changes[0].back)
			cal, changes = changes[0].cal, changes[1:]
		}
		if cal == nil || cal == calibrator.Calibrator(calibrator.Identity{}) {
			continue
		}
		sum += scoreRow(s, i, cal, z, p).nll - scoreRow(s, i, nil, z, p).nll
		out.most = max(out.most, sum)
	}
	return out
}

// add takes in another stream: the most that one lost, and all returns.
func (t *toRaw) add(u toRaw) { t.most, t.returns = max(t.most, u.most), t.returns+u.returns }

func (t toRaw) String() string {
	return fmt.Sprintf("at most %.1f nats lost to the raw scores in total, at any row of a stream; %d returns of the "+
		"identity for that", t.most, t.returns)
}

// verdict is what one publication did on the rows that followed: their mean NLL less that which the calibrator before
// it would have had.
type verdict struct {
	rows     int
	diff, se float64
}

func (v verdict) helped() bool { return v.diff+z95*v.se < 0 }
func (v verdict) hurt() bool   { return v.diff-z95*v.se > 0 }

// z95 is one-sided.
const z95 = 1.645

// rowScore is what a calibrator makes of a row.
type rowScore struct {
	nll float64
	hit bool
}

func scoreRow(s *stream, i int, cal calibrator.Calibrator, z, p []float64) rowScore {
	nll, _, hit := apply(s, i, cal, z, p)
	return rowScore{nll, hit}
}

// byNLL is the rise of the NLL; byAccuracy that of the accuracy: below 0 it has fallen.
func byNLL(now, was rowScore) float64      { return now.nll - was.nll }
func byAccuracy(now, was rowScore) float64 { return float64(step(now.hit) - step(was.hit)) }

// judge looks at so many rows after each publication, as far as the next one or the stream's end. compare
// turns the scores of a row under both into a number.
func judge(s *stream, changes []change, horizon int, compare func(now, was rowScore) float64) []verdict {
	var out []verdict
	var before calibrator.Calibrator
	for n, c := range changes {
		end := min(s.rows(), c.row+horizon)
		if n+1 < len(changes) {
			end = min(end, changes[n+1].row)
		}
		out = append(out, judgeRows(s, [2]int{c.row, end}, c.cal, before, compare))
		before = c.cal
	}
	return out
}

// judgeRows looks at the rows [of[0], of[1]) under a calibrator and under the one before it.
func judgeRows(s *stream, of [2]int, now, before calibrator.Calibrator, compare func(now, was rowScore) float64,
) (v verdict) {
	z, p := make([]float64, s.k), make([]float64, s.k)
	var sum, square float64
	for i := of[0]; i < of[1]; i++ {
		d := compare(scoreRow(s, i, now, z, p), scoreRow(s, i, before, z, p))
		sum += d
		square += d * d
		v.rows++
	}
	if m := float64(v.rows); v.rows > 1 {
		v.diff = sum / m
		v.se = math.Sqrt(max(0, square/m-v.diff*v.diff) / (m - 1))
	}
	return v
}

// unavoidable tells how many hurt publications of a stream which is stationary in the long run are the stream's doing.
type unavoidable struct {
	longRun   int // publications that hurt over all rows of the stream
	hindsight int // that would hurt, too, were the published method fitted to all rows of the stream
}

func (u *unavoidable) add(v unavoidable) {
	u.longRun, u.hindsight = u.longRun+v.longRun, u.hindsight+v.hindsight
}

func (u unavoidable) String() string {
	return fmt.Sprintf("%d hurt over all rows of their stream; had each been fitted to all of these in hindsight, %d "+
		"would hurt on the day after", u.longRun, u.hindsight)
}

// notOurs judges the published calibrators on all rows of the stream, and in their place, on the rows of the day after,
// those which hindsight fits.
func notOurs(s *stream, changes []change) (out unavoidable, err error) {
	best := map[string]calibrator.Calibrator{"identity": nil}
	var before calibrator.Calibrator
	for n, c := range changes {
		end := min(s.rows(), c.row+dayRows)
		if n+1 < len(changes) {
			end = min(end, changes[n+1].row)
		}
		if _, ok := best[c.method]; !ok {
			if best[c.method], err = fitted(c.method, s, 0, s.rows()); err != nil {
				return out, err
			}
		}
		out.longRun += step(judgeRows(s, [2]int{0, s.rows()}, c.cal, before, byNLL).hurt())
		out.hindsight += step(judgeRows(s, [2]int{c.row, end}, best[c.method], before, byNLL).hurt())
		before = c.cal
	}
	return out, nil
}
