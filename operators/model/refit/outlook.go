package refit

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// If rows are independent, the gain of a calibrator on the rows of a test is also its expected gain on later rows. But
// classes or domains may come in runs. Then the rows of one run only prove that the calibrator is better in that run.
// So a calibrator that is to be published must also have a positive outlook:
//
//	ḡ - z·√(V/n + (V - V₀)/h) > 0
//
// Here ḡ is the mean gain, by weight, on the n rows of the test. V₀ and V are the variances of the gains of single rows
// and in the long run, measured on the sampled rows. h is the number of rows after which a refit may come next. The
// left side is a lower bound of the expected gain on these h rows. The first term under the root is the uncertainty of
// the mean. The second is how far the mean of h rows may be from it. For independent rows V = V₀.

// outlookZ is the 99 % quantile of the normal distribution.
const outlookZ = 2.33

const (
	// outlookBlock is the number of rows of the shortest runs that are compared.
	outlookBlock = 50
	// leastRuns is the smallest number of runs of a length whose variance is used.
	leastRuns = 4
)

// gainSum holds Σw·x and Σw of a block of rows, where x is the gain in NLL of one calibrator over another.
type gainSum struct{ wx, w float64 }

// steadiest returns, of the candidates that may be published, the one with the best outlook; -1 if no outlook is
// positive. It passes over those that are unsafe.
func (rs *runs) steadiest() (int, error) {
	r, best, most := rs.run, -1, 0.0
	var o *outlook
	for i, c := range r.candidates {
		if r.verdict(c, &rs.stage.cfg) != "" {
			continue
		}
		if why, err := r.unsafe(rs.publisher, c); err != nil {
			return -1, err
		} else if why != "" {
			continue
		}
		if o == nil {
			var err error
			if o, err = rs.newOutlook(); err != nil {
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

// unsure says that the gain of a candidate may not last although it has all the evidence. It returns "" if the evidence
// is missing or the outlook is positive.
func (rs *runs) unsure(c *candidate) (string, error) {
	if rs.run.verdict(c, &rs.stage.cfg) != "" {
		return "", nil
	}
	if why, err := rs.run.unsafe(rs.publisher, c); why != "" || err != nil {
		return why, err
	}
	o, err := rs.newOutlook()
	if err != nil {
		return "", err
	}
	low, err := o.ofCandidate(rs.run, c)
	if err != nil || low > 0 {
		return "", err
	}
	mean, _ := c.diff()
	return fmt.Sprintf("NLL fell by %.5f, but from run to run of the rows that varies: by %.5f at least on the next",
		-mean, low), nil
}

// outlook holds what calibrators are compared by at a pane: the sample, and the loss of each of its rows under the
// calibrator in force.
type outlook struct {
	key   *stage.Key
	bound float64 // of a loss
	was   []float64
	fresh int     // Config.FreshRows
	next  float64 // h, as a weight
}

func (p *publisher) newOutlook() (*outlook, error) {
	k, f := p.sampled(), p.version.Newest()
	was, err := p.lossesOf(f).of(k, inForce(p.version), p.bound())
	if err != nil {
		return nil, err
	}
	fresh := p.stage.cfg.FreshRows
	o := &outlook{key: k, bound: p.bound(), was: was, fresh: fresh, next: float64(max(fresh, leastValidation))}
	if n := len(k.Sample); n > 0 {
		o.next *= weightOf(k.Sample) / float64(n)
	}
	return o, nil
}

// gained is the mean gain of a calibrator over the one in force, in nats, on rows of total weight w. since is the event
// time of a change; math.MinInt64 = no change.
type gained struct {
	mean, w float64
	since   int64
	// changes are the times of earlier changes of the stream, ascending, where the answer is to one that is known to
	// the row; nil = fresh_rows before since may belong to either side.
	changes []int64
}

// parts divides the gains of the sample over the calibrator in force at the known changes of the stream, and where the
// gain began; each part is sums of blocks of outlookBlock rows. now holds the losses of the other calibrator. Rows are
// told by their prediction times, for labels may come late. gap rows before a change belong to neither side, because
// its time is an estimate.
func (o *outlook) parts(now []float64, g gained) [][]gainSum {
	var cuts []int64
	gap := o.fresh
	for _, since := range g.changes {
		if gap = leastTracked; since < g.since {
			cuts = append(cuts, since)
		}
	}
	cuts = append(cuts, g.since)
	last, rows := len(cuts), o.key.Sample
	of := func(ts int64) (part int) {
		for part < last && ts >= cuts[part] {
			part++
		}
		return part
	}
	out, n, all := make([][]gainSum, last+1), make([]int, last+1), make([]int, last+1)
	for i := range rows {
		all[of(rows[i].TS)]++
	}
	for i := range rows {
		part := of(rows[i].TS)
		if part < last && n[part] >= all[part]-gap {
			continue
		}
		if n[part]%outlookBlock == 0 {
			out[part] = append(out[part], gainSum{})
		}
		b, w := &out[part][len(out[part])-1], float64(rows[i].W)
		b.wx += w * (o.was[i] - now[i])
		b.w += w
		n[part]++
	}
	kept := out[:0]
	for part := range out {
		if all[part] > 0 || part == last {
			kept = append(kept, out[part])
		}
	}
	return kept
}

// ofCandidate returns the outlook of a run's candidate. Rows from before the alarm or shift that the run answers are
// kept apart: a different gain at that time does not mean that the gain will not last.
func (o *outlook) ofCandidate(r *run, c *candidate) (float64, error) {
	since := int64(math.MinInt64)
	if r.reason != reasonPeriod {
		since = r.fitFrom
	}
	mean, _ := c.diff()
	return o.of(c.cal, &c.known, gained{-mean, c.score.w, since, nil})
}

// of returns a lower bound of a calibrator's expected gain over the one in force on the next rows, in nats, after it
// gained g. known caches its losses.
func (o *outlook) of(other calibrator.Calibrator, known *sampleLosses, g gained) (float64, error) {
	now, err := known.of(o.key, other, o.bound)
	if err != nil {
		return 0, err
	}
	short, long := longRun(o.parts(now, g))
	return g.mean - outlookZ*math.Sqrt(long/g.w+(long-short)/o.next), nil
}

func weightOf(rows []acc.SampleRow) (w float64) {
	for i := range rows {
		w += float64(rows[i].W)
	}
	return w
}

// sampleLosses caches the NLLs of a key's sampled rows under one calibrator, with the floor that a run uses. A
// candidate that waits for its outlook asks at every pane, and each row is scored only once. The cache follows from the
// sample, so it is in no checkpoint.
type sampleLosses struct {
	added int64 // stage.Key.Added when nll was computed
	nll   []float64
}

// lossesOf returns the losses of the calibrator in force (nil = the identity) and drops those of earlier ones.
func (p *publisher) lossesOf(f *stage.InForce) *sampleLosses {
	l := p.losses[f]
	if l == nil {
		l = &sampleLosses{}
		p.losses = map[*stage.InForce]*sampleLosses{f: l}
	}
	return l
}

// of returns the losses of all rows of the sample. cal and bound must always be the same; cal nil = the identity.
func (l *sampleLosses) of(k *stage.Key, cal calibrator.Calibrator, bound float64) ([]float64, error) {
	n := len(k.Sample)
	have := n - int(min(int64(n), k.Added-l.added))
	if have > len(l.nll) {
		have = 0
	}
	l.nll = slices.Delete(l.nll, 0, len(l.nll)-have)
	nll, err := capped{k.K, bound}.appendNLLs(l.nll, cal, k.Sample[have:])
	if err != nil {
		*l = sampleLosses{}
		return nil, err
	}
	l.nll, l.added = nll, k.Added
	return nll, nil
}

// longRun returns n·Var(mean of n rows) by unit of weight, for single blocks and in the long run. The value for blocks
// equals that of single rows if rows are independent. The long-run value is the largest over runs of 1, 2, 4, … blocks;
// for longer runs a standard error of the estimate is subtracted. Each part has its own mean.
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

// spread returns n/(n-1)·Σ(sum of a run - its share of the total)² over the n newest whole runs of l blocks, and their
// weight. It returns 0 for fewer than two runs.
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
