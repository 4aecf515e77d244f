package refit

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// What a calibrator gained on the rows of a test is what it gains on the next ones where rows do not depend on each
// other. Where classes or domains come in runs, the rows of one run prove that the calibrator is better in that
// run. So what is to be published must also have an outlook:
//
//	ḡ - z·√(V/n + (V - V₀)/h) > 0
//
// with ḡ the mean gain by weight on the n rows of the test, V₀ and V the variances of the gains of single rows and
// in the long run, measured on the sampled rows, and h the rows of which a refit may be next. It is a bound of the
// expected gain on these h rows: the first term is what the test does not know of the mean, the second how far the
// mean of h rows is from it. Where rows do not depend on each other V = V₀.

// outlookZ is the quantile of the normal distribution at 99 %.
const outlookZ = 2.33

const (
	// outlookBlock is the number of rows of the shortest runs that are compared.
	outlookBlock = 50
	// leastRuns is how many runs of a length it takes for their variance to count.
	leastRuns = 4
)

// gainSum is Σw·x and Σw of a block of rows, x the gain in NLL of one calibrator over another.
type gainSum struct{ wx, w float64 }

// steadiest is the candidate that may be published whose gain is the surest to last, -1 where none's is.
func (s *State) steadiest() (int, error) {
	r, best, most := s.run, -1, 0.0
	var o *outlook
	for i, c := range r.candidates {
		if r.verdict(c, &s.stage.cfg) != "" {
			continue
		}
		if o == nil {
			var err error
			if o, err = s.outlook(); err != nil {
				return -1, err
			}
		}
		low, err := o.ofCandidate(r, c)
		if err != nil {
			return -1, err
		}
		if low > most {
			best, most = i, low
		}
	}
	return best, nil
}

// unsure says that the gain of a candidate with all the evidence may not last; "" where it has not all of it.
func (s *State) unsure(c *candidate) (string, error) {
	if s.run.verdict(c, &s.stage.cfg) != "" {
		return "", nil
	}
	o, err := s.outlook()
	if err != nil {
		return "", err
	}
	low, err := o.ofCandidate(s.run, c)
	if err != nil || low > 0 {
		return "", err
	}
	mean, _ := c.diff()
	return fmt.Sprintf("NLL fell by %.5f, but from run to run of the rows that varies: by %.5f at least on the next",
		-mean, low), nil
}

// outlook is what all calibrators are compared by at a pane: the sample, and the loss of each row under the one in
// force.
type outlook struct {
	key   *stage.Key
	was   []float64
	fresh int     // Config.FreshRows
	next  float64 // h, as a weight
}

func (p *publisher) outlook() (*outlook, error) {
	k, f := p.whole(), p.version.Newest()
	was, err := p.lossesOf(f).of(k, inForce(p.version))
	if err != nil {
		return nil, err
	}
	fresh := p.stage.cfg.FreshRows
	o := &outlook{key: k, was: was, fresh: fresh, next: float64(max(fresh, leastValidation))}
	if n := len(k.Sample); n > 0 {
		o.next *= weightOf(k.Sample) / float64(n)
	}
	return o, nil
}

// gained is the mean gain in nats of a calibrator over the one in force on rows of weight w. A change came at the
// event time since; math.MinInt64: none did.
type gained struct {
	mean, w float64
	since   int64
}

// ofCandidate is the bound of the gain of a run's candidate. What came before the alarm, or the shift of shares,
// that the refit answers is apart: that the gain was another one then is no sign that it will not last.
func (o *outlook) ofCandidate(r *run, c *candidate) (float64, error) {
	since := int64(math.MinInt64)
	if r.reason != reasonPeriod {
		since = r.fitFrom
	}
	mean, _ := c.diff()
	return o.of(c.cal, &c.known, gained{-mean, c.score.w, since})
}

// of is the lower bound of the expected gain in nats of a calibrator over the one in force on the next rows, after
// it gained g. known are its losses as far as they are.
func (o *outlook) of(other calibrator.Calibrator, known *sampleLosses, g gained) (float64, error) {
	now, err := known.of(o.key, other)
	if err != nil {
		return 0, err
	}
	before, after := apart(o.key.Sample, g.since, o.fresh)
	short, long := longRun([][]gainSum{o.gains(now, 0, before), o.gains(now, after, len(now))})
	return g.mean - outlookZ*math.Sqrt(long/g.w+(long-short)/o.next), nil
}

func weightOf(rows []acc.SampleRow) (w float64) {
	for i := range rows {
		w += float64(rows[i].W)
	}
	return w
}

// apart cuts rows at an event time: those before the first place, and from the second on. So many before it are
// left out: since when something changed is an estimate.
func apart(rows []acc.SampleRow, since int64, gap int) (before, after int) {
	for i := range rows {
		if rows[i].TS < since {
			after = i + 1
		}
	}
	return max(0, after-gap), after
}

// sampleLosses are the NLLs of a key's sampled rows under one calibrator, floored as in a run. A row is scored
// once: what waits for its outlook asks at every pane. They are made of the sample, and in no checkpoint.
type sampleLosses struct {
	added int64 // stage.Key.Added when they were made
	nll   []float64
}

// lossesOf are the losses of the calibrator in force, which takes the place of those before it; nil is the identity.
func (p *publisher) lossesOf(f *stage.InForce) *sampleLosses {
	l := p.losses[f]
	if l == nil {
		l = &sampleLosses{}
		p.losses = map[*stage.InForce]*sampleLosses{f: l}
	}
	return l
}

// of returns those of all rows of the sample; cal is always the same, nil the identity.
func (l *sampleLosses) of(k *stage.Key, cal calibrator.Calibrator) ([]float64, error) {
	n := len(k.Sample)
	have := n - int(min(int64(n), k.Added-l.added))
	if have > len(l.nll) {
		have = 0
	}
	l.nll = slices.Delete(l.nll, 0, len(l.nll)-have)
	sc, bound := stage.NewScorer(k.K), nllBound(k.K)
	for i := have; i < n; i++ {
		s, err := sc.Row(cal, &k.Sample[i], bound)
		if err != nil {
			*l = sampleLosses{}
			return nil, err
		}
		l.nll = append(l.nll, s.NLL)
	}
	l.added = k.Added
	return l.nll, nil
}

// gains are those of the rows from..to over the calibrator in force, in blocks of outlookBlock in their order; now
// are the losses of another.
func (o *outlook) gains(now []float64, from, to int) (out []gainSum) {
	for i := from; i < to; i++ {
		if (i-from)%outlookBlock == 0 {
			out = append(out, gainSum{})
		}
		b, w := &out[len(out)-1], float64(o.key.Sample[i].W)
		b.wx += w * (o.was[i] - now[i])
		b.w += w
	}
	return out
}

// longRun is n·Var(mean of n rows) by unit of weight: for a block, which is that of single rows where they are
// independent, and in the long run, the largest over runs of 1, 2, 4, … blocks, of longer ones less a standard
// error of the estimate. Each part has a mean of its own.
func longRun(parts [][]gainSum) (short, long float64) {
	for l := 1; ; l *= 2 {
		square, weight, runs, free := 0.0, 0.0, 0, 0
		for _, p := range parts {
			s, w, n := spread(p, l)
			square, weight, runs, free = square+s, weight+w, runs+n, free+max(n-1, 0)
		}
		if runs < leastRuns || weight <= 0 {
			return short, long
		}
		x := square / weight
		if l == 1 {
			short, long = x, x
			continue
		}
		long = max(long, x/(1+math.Sqrt(2/float64(free))))
	}
}

// spread is n/(n-1)·Σ(sum of a run - its share of all)² over the n newest whole runs of l blocks, and their weight;
// 0 for fewer than two.
func spread(blocks []gainSum, l int) (square, weight float64, n int) {
	n = len(blocks) / l
	if n < 2 {
		return 0, 0, 0
	}
	blocks = blocks[len(blocks)-n*l:]
	all := total(blocks)
	if all.w <= 0 {
		return 0, 0, 0
	}
	for i := 0; i < len(blocks); i += l {
		part := total(blocks[i : i+l])
		d := part.wx - part.w*all.wx/all.w
		square += d * d
	}
	return square * float64(n) / float64(n-1), all.w, n
}

func total(blocks []gainSum) (s gainSum) {
	for _, b := range blocks {
		s.wx += b.wx
		s.w += b.w
	}
	return s
}
