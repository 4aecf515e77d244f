package drift

import (
	"errors"
	"math"
	"runtime"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// classRef holds the class counts of a reference window: of its predictions (said) and of its labelled rows (confused).
// Only that half of each is read. They are nil if shards do not count classes.
type classRef struct{ said, confused *acc.ClassCounts }

// plusClasses adds the class counts of a set, if it has any. It leaves dst unchanged if dst would overflow.
func plusClasses(dst *acc.ClassCounts, set *acc.Set) (*acc.ClassCounts, error) {
	if set.Classes == nil {
		return dst, nil
	}
	if dst == nil {
		return set.Classes.Clone(), nil
	}
	if err := dst.Merge(set.Classes); err != nil && !errors.Is(err, acc.ErrOverflow) {
		return dst, err
	}
	return dst, nil
}

// classDrift holds what a key knows of its class shares, besides the reference.
type classDrift struct {
	k    int
	soft softJoint
	// For corrections: the predictions since Collect last returned counts, and when the latest correction was proposed.
	block *acc.ClassCounts
	at    int64
}

// gapBins is the number of bins of the ECE by class.
const gapBins = 15

// A softJoint is rebuilt when this share of its rows is new.
const (
	shownShare    = 1
	proposedShare = .25
)

// leastSoft is the smallest number of sampled rows for a softJoint.
const leastSoft = 200

// softJoint is the expected joint distribution of symbols and labels in the latest sampled rows. A symbol is a
// predicted class with a band of confidence. For each symbol it sums the probabilities that the calibrator in force
// gives (its base, if it is class weights). The probabilities are first corrected by class to p_j u_j/Σ p u, with u
// such that their means equal the shares of the labels. So the sum describes these rows, whatever class shares the
// calibrator was fitted on. It is rebuilt where it is needed and another calibrator is in force or too many of the
// rows are new: all of them for what is shown, a quarter for what is proposed.
type softJoint struct {
	pool     *shift.Pool // from the labels of the sampled rows; the fields below are by its classes
	revision int         // revision in force when it was built
	fresh    int64       // sampled rows since then
	rows     float64
	bias     []float64 // u, shrunk towards 1; strongly if it varies little between classes
	joint    []float64 // (K·Bands)×K
	byLabel  shift.ByLabel
	wrong    float64 // rows of the pool's rest for which the model predicts another class of the rest
}

func (s *softJoint) ready() bool { return s.rows > 0 }

// unweighted splits the calibrator in force into its base and the class weights on top; nil = no weights.
func unweighted(v *stage.Version) (cal calibrator.Calibrator, weights []float64) {
	f := v.Newest()
	if f == nil {
		return calibrator.Identity{}, nil
	}
	if w, ok := f.Cal.(*calibrator.ClassWeights); ok {
		return w.Base(), w.Weights()
	}
	return f.Cal, nil
}

// current returns soft, rebuilt if it is not of the calibrator in force or a share of the latest rows are new: only
// what is shown or proposed pays for it, not every pane. errSoft where there are too few rows.
func (d *classDrift) current(k *stage.Key, share float64) (*softJoint, error) {
	v, s, n := k.Version, &d.soft, len(k.Sample)
	stale := s.revision != v.InForceRevision() || s.fresh >= int64(max(leastSoft, share*float64(n)))
	if n >= leastSoft && (stale || !s.ready()) {
		cal, _ := unweighted(v)
		made, err := newSoftJoint(k, cal, shift.NewPool(sampledLabels(k)))
		if err != nil {
			return nil, err
		}
		made.revision = v.InForceRevision()
		*s = made
	}
	if !s.ready() {
		return nil, errSoft
	}
	return s, nil
}

// newSoftJoint builds a softJoint from the key's sample, by the classes of a pool.
func newSoftJoint(k *stage.Key, cal calibrator.Calibrator, pool *shift.Pool) (s softJoint, err error) {
	n := len(k.Sample)
	s.pool = pool
	kp := s.pool.Classes()
	s.joint = make([]float64, kp*acc.Bands*kp)
	s.byLabel = shift.ByLabel{Rows: make([]float64, kp), Gap: make([]float64, kp*gapBins)}
	sc, cp, p := stage.NewScorer(k.K), make([]float64, k.K), make([]float64, n*kp)
	w, at, others := make([]float64, n), make([]int, n), make([]float64, n)
	var weight float64
	for i := range k.Sample {
		row := &k.Sample[i]
		raw, err := sc.Row(nil, row, math.Inf(1))
		if err != nil {
			return s, err
		}
		if _, err := sc.Row(cal, row, math.Inf(1)); err != nil {
			return s, err
		}
		sc.Probs(cp)
		s.pool.Sum(p[i*kp:(i+1)*kp], cp)
		says, y := s.pool.Of(raw.Class), s.pool.Of(int(row.Y))
		if rest := p[i*kp+says]; s.pool.Class(says) < 0 && rest > 0 {
			others[i] = 1 - cp[raw.Class]/rest
		}
		w[i], at[i] = float64(row.W), (says*acc.Bands+acc.BandOf(raw.Confidence))*kp
		weight += w[i]
		s.byLabel.Rows[y] += w[i]
		d := -raw.Confidence
		if raw.Hit {
			d++
		}
		s.byLabel.Gap[y*gapBins+metric.BinIndex(raw.Confidence, gapBins)] += w[i] * d
	}
	s.bias = classBias(p, w, s.byLabel.Rows)
	information := make([]float64, kp) // Fisher information on ln u by class
	for i := range k.Sample {
		row := p[i*kp : (i+1)*kp]
		shift.Correct(row, row, s.bias)
		for j, x := range row {
			one := w[i] / weight * float64(n) * x // scaled to rows, because the estimates treat them as counts
			s.joint[at[i]+j] += one
			information[j] += one * (1 - x)
		}
		s.wrong += w[i] / weight * float64(n) * row[kp-1] * others[i]
	}
	s.rows = float64(n)
	shrinkBias(s.bias, information)
	return s, nil
}

// shrinkBias shrinks the scales of classes towards 1. Scales fitted to a few rows a class would make a good calibrator
// worse.
func shrinkBias(u, information []float64) {
	var sum, all float64
	for j, x := range information {
		sum, all = sum+x*u[j], all+x
	}
	v := make([]float64, len(u))
	for j, x := range information {
		if sum > 0 { // otherwise no row leaves any class in doubt
			u[j] *= all / sum
		}
		v[j] = 1 / x
	}
	shift.Shrink(u, v, shift.PauleMandel(u, v))
}

// sampledLabels returns the weight of the key's sample by label.
func sampledLabels(k *stage.Key) []float64 {
	rows := make([]float64, k.K)
	for i := range k.Sample {
		rows[k.Sample[i].Y] += float64(k.Sample[i].W)
	}
	return rows
}

// biasSteps and biasTolerance end the iterative scaling. The tolerance is well below the noise of a share of thousands
// of rows. biasBound limits the scale of a class that the calibrator rules out; otherwise the scale would grow at every
// step, beyond the range of a float or of a class weight.
const (
	biasSteps     = 100
	biasTolerance = 1e-5
	biasBound     = 1e4
)

// classBias returns the u at which the means of p_j u_j/Σ p u over the rows, weighted by w, equal the shares of their
// labels. It uses iterative scaling, which gives the maximum likelihood of one constant a class. Half a row is added
// for each class, so that no class is ruled out.
func classBias(p, w, labels []float64) []float64 {
	k := len(labels)
	u, mean := make([]float64, k), make([]float64, k)
	var total float64
	for j := range u {
		u[j] = 1
		total += labels[j]
	}
	unit := total / float64(len(w))
	for range biasSteps {
		runtime.Gosched() // a step takes long where classes are many
		clear(mean)
		for i, x := range w {
			row, sum := p[i*k:(i+1)*k], 0.0
			for j, q := range row {
				sum += q * u[j]
			}
			x /= sum * total
			for j, q := range row {
				mean[j] += x * q
			}
		}
		var off float64
		for j := range u {
			mean[j] *= u[j]
			want := (labels[j] + unit/2) / (total + unit/2*float64(k))
			off = max(off, math.Abs(want-mean[j]))
			if mean[j] > 0 {
				u[j] = min(biasBound, max(1/biasBound, u[j]*(want/mean[j])))
			}
		}
		if off < biasTolerance {
			break
		}
	}
	return u
}

// says returns the predicted class of each symbol of k classes.
func says(k int) []int {
	out := make([]int, k*acc.Bands)
	for i := range out {
		out[i] = i / acc.Bands
	}
	return out
}

// predictedCounts returns the predictions by symbol of the pool, with weights scaled so that they sum to the number of
// rows.
func predictedCounts(c *acc.ClassCounts, p *shift.Pool) []float64 {
	n, w := c.Total()
	out := make([]float64, p.Classes()*acc.Bands)
	for cell := range c.Cells() {
		out[p.Of(cell.Class)*acc.Bands+cell.Band] += cell.Seen.W * float64(n) / w
	}
	return out
}

// predictedNow returns the predictions by class, with weights scaled so that they sum to the number of rows.
func predictedNow(c *acc.ClassCounts) []float64 {
	n, w := c.Total()
	out := make([]float64, c.Classes())
	for cell := range c.Cells() {
		out[cell.Class] += cell.Seen.W * float64(n) / w
	}
	return out
}

// predictedSample returns the key's sampled rows by predicted class, with weights scaled so that they sum to the number
// of rows.
func predictedSample(k *stage.Key) []float64 {
	out := make([]float64, k.K)
	var weight float64
	for i := range k.Sample {
		row := &k.Sample[i]
		top := 0
		for j, z := range row.Z {
			if z > row.Z[top] {
				top = j
			}
		}
		out[top] += float64(row.W)
		weight += float64(row.W)
	}
	for j := range out {
		out[j] *= float64(len(k.Sample)) / weight
	}
	return out
}

// confusedPool returns the pool for the labels of a confusion matrix.
func confusedPool(c *acc.ClassCounts) *shift.Pool {
	rows := make([]float64, c.Classes())
	for cell := range c.Cells() {
		rows[cell.Class] += cell.Right.W
	}
	for pair := range c.Pairs() {
		rows[pair.Label] += pair.W
	}
	return shift.NewPool(rows)
}

// confusion returns the labelled rows by symbol and label of the pool, scaled to numbers of rows. wrong is the rows of
// the pool's rest for which the model predicts another class of the rest.
func confusion(c *acc.ClassCounts, p *shift.Pool) (joint []float64, wrong float64) {
	n, w := c.LabelledTotal()
	k, scale := p.Classes(), float64(n)/w
	joint = make([]float64, k*acc.Bands*k)
	for cell := range c.Cells() {
		j := p.Of(cell.Class)
		joint[(j*acc.Bands+cell.Band)*k+j] += cell.Right.W * scale
	}
	for pair := range c.Pairs() {
		says, y := p.Of(pair.Class), p.Of(pair.Label)
		joint[(says*acc.Bands+pair.Band)*k+y] += pair.W * scale
		if says == y {
			wrong += pair.W * scale
		}
	}
	return joint, wrong
}

// restRows returns the rows in the pool's last class, the rest.
func restRows(joint []float64, p *shift.Pool) (n float64) {
	k := p.Classes()
	for i := k - 1; i < len(joint); i += k {
		n += joint[i]
	}
	return n
}
