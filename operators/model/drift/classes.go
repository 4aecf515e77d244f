package drift

import (
	"errors"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/calib/shift"
)

// classRef is what a reference window knows by class: predictions, and labelled rows. Of each only that half is read;
// nil where shards count no classes.
type classRef struct{ said, confused *acc.ClassCounts }

// plusClasses adds the class counts of a set, where it has any and dst has room.
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

// classDrift is what a key knows of the shares of its classes beside its reference.
type classDrift struct {
	k    int
	soft softJoint
	// For corrections: predictions since the latest look at the shares, and when the latest correction was proposed.
	block *acc.ClassCounts
	at    int64
}

// gapBins is the number of bins of the ECE by class.
const gapBins = 15

// leastSoft is how many sampled rows a softJoint is made of at least.
const leastSoft = 200

// softJoint says how symbols and labels go together in the latest sampled rows: the sum of the probabilities of the
// calibrator in force by symbol, or of its base where that is class weights, made right by class: p_j u_j/Σ p u with
// the u at which their means are the shares of the labels. So it is one of these rows, whatever shares the calibrator
// was fitted on. It is made anew when another calibrator is in force, or a quarter of the rows are others.
type softJoint struct {
	pool     *shift.Pool // of the labels of the sampled rows; what follows is by its classes
	revision int         // that was in force
	fresh    int64       // sampled rows since
	rows     float64
	bias     []float64 // u, drawn towards 1 by how much it varies at all
	joint    []float64 // (K·Bands)×K
	byLabel  shift.ByLabel
	wrong    float64 // rows of the rest of the pool of which the model says another class of the rest
}

func (s *softJoint) ready() bool { return s.rows > 0 }

// unweighted is the calibrator in force without the class weights on it, and these; nil where there are none.
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

// follow keeps it up to date; added is how many sampled rows the pane brought.
func (d *classDrift) follow(k *stage.Key, added int) error {
	v := k.Version
	s := &d.soft
	s.fresh += int64(added)
	n := len(k.Sample)
	if n < leastSoft {
		return nil
	}
	if s.ready() && s.revision == v.InForceRevision() && s.fresh < int64(max(leastSoft, n/4)) {
		return nil
	}
	cal, _ := unweighted(v)
	made, err := newSoftJoint(k, cal, shift.NewPool(sampledLabels(k)))
	if err != nil {
		return err
	}
	made.revision = v.InForceRevision()
	*s = made
	return nil
}

// newSoftJoint makes it of the key's sample, by the classes of a pool.
func newSoftJoint(k *stage.Key, cal calibrator.Calibrator, pool *shift.Pool) (s softJoint, err error) {
	n := len(k.Sample)
	s.pool = pool
	kp := s.pool.Classes()
	s.joint = make([]float64, kp*acc.Bands*kp)
	s.byLabel = shift.ByLabel{Rows: make([]float64, kp), Gap: make([]float64, kp*gapBins)}
	z, raw, cp, p := make([]float64, k.K), make([]float64, k.K), make([]float64, k.K), make([]float64, n*kp)
	w, at, others := make([]float64, n), make([]int, n), make([]float64, n)
	var weight float64
	for i := range k.Sample {
		row := &k.Sample[i]
		for j, x := range row.Z {
			z[j] = float64(x)
		}
		r, ok := kernel.Logits(z, raw)
		if !ok {
			return s, fmt.Errorf("sampled logits are not finite")
		}
		if _, _, err := stage.Evaluate(cal, z, cp, int(row.Y)); err != nil {
			return s, err
		}
		s.pool.Sum(p[i*kp:(i+1)*kp], cp)
		says, y := s.pool.Of(r.Arg), s.pool.Of(int(row.Y))
		if rest := p[i*kp+says]; s.pool.Class(says) < 0 && rest > 0 {
			others[i] = 1 - cp[r.Arg]/rest
		}
		w[i], at[i] = float64(row.W), (says*acc.Bands+acc.BandOf(r.Conf))*kp
		weight += w[i]
		s.byLabel.Rows[y] += w[i]
		d := -r.Conf
		if r.Arg == int(row.Y) {
			d++
		}
		s.byLabel.Gap[y*gapBins+metric.BinIndex(r.Conf, gapBins)] += w[i] * d
	}
	s.bias = classBias(p, w, s.byLabel.Rows)
	told := make([]float64, kp) // information on ln u by class
	for i := range k.Sample {
		row := p[i*kp : (i+1)*kp]
		shift.Correct(row, row, s.bias)
		for j, x := range row {
			one := w[i] / weight * float64(n) * x // rows, not weights: the estimates take them for counts
			s.joint[at[i]+j] += one
			told[j] += one * (1 - x)
		}
		s.wrong += w[i] / weight * float64(n) * row[kp-1] * others[i]
	}
	s.rows = float64(n)
	shrinkBias(s.bias, told)
	return s, nil
}

// shrinkBias draws the scales of classes towards 1: fitted to some rows a class they make a calibrator worse that is
// right as it is.
func shrinkBias(u, told []float64) {
	var sum, all float64
	for j, x := range told {
		sum, all = sum+x*u[j], all+x
	}
	v := make([]float64, len(u))
	for j, x := range told {
		if sum > 0 { // else no row has a class in doubt
			u[j] *= all / sum
		}
		v[j] = 1 / x
	}
	shift.Shrink(u, v, shift.PauleMandel(u, v))
}

// sampledLabels are the weights of a key's sample by label.
func sampledLabels(k *stage.Key) []float64 {
	rows := make([]float64, k.K)
	for i := range k.Sample {
		rows[k.Sample[i].Y] += float64(k.Sample[i].W)
	}
	return rows
}

// biasSteps and biasTolerance end the scaling: the latter is well below the noise of a share of thousands of rows.
// biasBound bounds a class that the calibrator rules out: its scale would grow at every step, beyond what a number, or
// a class weight, can be.
const (
	biasSteps     = 100
	biasTolerance = 1e-5
	biasBound     = 1e4
)

// classBias returns the u at which the means of p_j u_j/Σ p u over the rows, of weights w, are the shares of their
// labels, by iterative scaling: the maximum likelihood of a constant by class. Half a row is added for each class, so
// that none is ruled out.
func classBias(p, w, labels []float64) []float64 {
	k := len(labels)
	u, mean, row := make([]float64, k), make([]float64, k), make([]float64, k)
	var total float64
	for j := range u {
		u[j] = 1
		total += labels[j]
	}
	unit := total / float64(len(w))
	for range biasSteps {
		clear(mean)
		for i, x := range w {
			shift.Correct(row, p[i*k:(i+1)*k], u)
			for j, q := range row {
				mean[j] += x * q / total
			}
		}
		var off float64
		for j := range u {
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

// says are the classes that the symbols of k classes say.
func says(k int) []int {
	out := make([]int, k*acc.Bands)
	for i := range out {
		out[i] = i / acc.Bands
	}
	return out
}

// predictedCounts are the predictions by symbol of the pool, as rows: their weights scaled to as many.
func predictedCounts(c *acc.ClassCounts, p *shift.Pool) []float64 {
	n, w := c.Total()
	out := make([]float64, p.Classes()*acc.Bands)
	for cell := range c.Cells() {
		out[p.Of(cell.Class)*acc.Bands+cell.Band] += cell.Seen.W * float64(n) / w
	}
	return out
}

// predictedNow are the predictions by class, as rows.
func predictedNow(c *acc.ClassCounts) []float64 {
	n, w := c.Total()
	out := make([]float64, c.Classes())
	for cell := range c.Cells() {
		out[cell.Class] += cell.Seen.W * float64(n) / w
	}
	return out
}

// predictedSample are a key's sampled rows by the class that they say, as rows.
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

// confusedPool is the pool of the labels of a confusion matrix.
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

// confusion are the labelled rows by symbol and label of the pool, as rows, and those of its rest of which the model
// says another class of the rest.
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

// restRows are the rows of the pool's rest, its last class.
func restRows(joint []float64, p *shift.Pool) (n float64) {
	k := p.Classes()
	for i := k - 1; i < len(joint); i += k {
		n += joint[i]
	}
	return n
}
