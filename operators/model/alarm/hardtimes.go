package alarm

import (
	"math"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/binenc"
)

// hardTimes keeps the alarm on accuracy quiet where inputs are harder at some hours of every day and the confidences
// show it. The first such fall is news. Once it has ended by itself, the alarm compares with the accuracy that the
// confidences promise, down to the least of that fall, for up to hardLonger times as long. A deeper fall, one that
// stays, and one that the confidences do not show are found as before.
//
// What the confidences promise is the mean of c + β, with β the reference curve. So the model need not be calibrated:
// a confidence must mean what it meant in the reference.
//
// The level is only ever lowered, and before the outcomes of a pane are known. So the bound on false alarms stands
// (docs/math.md).
type hardTimes struct {
	recent promised // of the latest rows, discounted by half every hardRows
	from   int64    // the end of the first pane of the present hard time; 0: inputs are not hard
	known  hardTime // the hardest and the longest of the falls that have ended
	fall   fallen   // from an alert until it has ended and inputs are no longer hard
}

// promised are rows: how many there are, how many of them the confidences promise to be right, and how many are.
type promised struct{ n, promise, right float64 }

// hardTime is a time of hard inputs: the least accuracy that the confidences promised, 1 if there was no such time, and
// how long it lasted, in ns.
type hardTime struct {
	accuracy float64
	lasted   int64
}

// fallen is a fall, with its rows while inputs were hard.
type fallen struct {
	rows promised
	hardTime
}

// hardRows is the half-life of the promise, in rows. Its noise is about .01, half the tolerance, and where inputs
// become harder by .3 within a few minutes it follows soon enough at one row in two seconds. With 250 rows there were
// alerts in most nights.
const hardRows = 100

// hardLonger bounds a hard time by the longest one before.
const hardLonger = 2

func newHardTimes() *hardTimes {
	return &hardTimes{known: hardTime{accuracy: 1}, fall: fallen{hardTime: hardTime{accuracy: 1}}}
}

// add discounts by keep and adds rows.
func (s *promised) add(keep float64, o promised) {
	s.n, s.promise, s.right = s.n*keep+o.n, s.promise*keep+o.promise, s.right*keep+o.right
}

// promiseOf returns what the confidences of a pane promise by the reference curve.
func promiseOf(p detect.Pane, ref *detect.Reference) (s promised) {
	for j, b := range p {
		s.add(1, promised{b.N(), min(b.N(), max(0, b.C1+b.C0+ref.Bias[j]*b.N())), b.N1})
	}
	return s
}

// observe takes a pane and returns by how much lower the level is that it is compared with. The panes before fix that,
// so that the tests may bet on it.
func (h *hardTimes) observe(spec *spec, ref *detect.Reference, p alarmPane, firing bool) (lower float64) {
	if h.recent.n > 0 && (h.from == 0 || float64(p.id-h.from) <= hardLonger*float64(h.known.lasted)) {
		lower = max(0, ref.Level()-max(h.recent.promise/h.recent.n, h.known.accuracy))
	}
	rows := promiseOf(p.sums, ref)
	h.recent.add(math.Exp2(-rows.n/hardRows), rows)
	switch depth := ref.Level() - h.recent.promise/h.recent.n; {
	case depth > spec.EpsilonAccuracy && h.from == 0:
		h.from = p.id
	case depth < spec.EpsilonAccuracy/2:
		h.from = 0
	}
	h.follow(spec.EpsilonAccuracy+ref.AccuracySlack, rows, p.id, firing)
	return lower
}

// follow adds the rows of a pane to a fall. It begins one when the alert fires, and learns from its end.
func (h *hardTimes) follow(tolerance float64, rows promised, at int64, firing bool) {
	f := &h.fall
	if firing && f.rows.n == 0 {
		f.rows = h.recent // of what the alert is
	}
	switch {
	case f.rows.n == 0:
	case h.from != 0:
		f.rows.add(1, rows)
		f.accuracy = min(f.accuracy, h.recent.promise/h.recent.n)
		f.lasted = max(f.lasted, at-h.from)
	case !firing:
		if f.shown(tolerance) {
			h.known = hardTime{min(h.known.accuracy, f.accuracy), max(h.known.lasted, f.lasted)}
		}
		*f = fallen{hardTime: hardTime{accuracy: 1}}
	}
}

// shown reports whether the confidences showed the fall: they promised one, and accuracy was not below that by more
// than the tolerance and 1.645 standard errors.
func (f *fallen) shown(tolerance float64) bool {
	n := f.rows.n
	if f.lasted == 0 {
		return false
	}
	rate := (f.rows.right + 1) / (n + 2)
	return (f.rows.promise-f.rows.right)/n <= tolerance+z95one*math.Sqrt(rate*(1-rate)/n)
}

// easier returns the pane with so many of its wrong rows counted as right, to be compared with the level as it is.
func easier(p detect.Pane, rows float64) detect.Pane {
	var wrong float64
	for _, b := range p {
		wrong += b.N0
	}
	if rows == 0 || wrong == 0 {
		return p
	}
	share := min(1, rows/wrong)
	out := make(detect.Pane, len(p))
	for j, b := range p {
		n, c := share*b.N0, share*b.C0
		out[j] = detect.BinSums{N1: b.N1 + n, C1: b.C1 + c, N0: b.N0 - n, C0: b.C0 - c}
	}
	return out
}

// append appends nothing before the first row, as builds did that knew no hard times.
func (h *hardTimes) append(dst []byte) []byte {
	if *h == *newHardTimes() {
		return dst
	}
	for _, s := range []promised{h.recent, h.fall.rows} {
		dst = binenc.AppendFloat64s(dst, s.n, s.promise, s.right)
	}
	dst = binenc.AppendVarint(dst, h.from)
	for _, t := range []hardTime{h.known, h.fall.hardTime} {
		dst = binenc.AppendVarint(binenc.AppendFloat64(dst, t.accuracy), t.lasted)
	}
	return dst
}

func (h *hardTimes) restore(r *binenc.Reader) {
	if r.Len() == 0 {
		return
	}
	for _, s := range []*promised{&h.recent, &h.fall.rows} {
		*s = promised{r.Float64(), r.Float64(), r.Float64()}
		ok := func(x float64) bool { return x >= 0 && x <= s.n*(1+1e-6) }
		if !ok(s.n) || !ok(s.promise) || !ok(s.right) || s.n > 1<<53 {
			r.Failf("%v rows, of which %v are promised to be right and %v are", s.n, s.promise, s.right)
		}
	}
	h.from = r.Varint()
	for _, t := range []*hardTime{&h.known, &h.fall.hardTime} {
		t.accuracy, t.lasted = r.Float64(), r.Varint()
		if !(t.accuracy >= 0 && t.accuracy <= 1 && t.lasted >= 0) {
			r.Failf("hard time of accuracy %v that lasted %d ns", t.accuracy, t.lasted)
		}
	}
	if *h == *newHardTimes() {
		r.Failf("hard times without rows")
	}
}
