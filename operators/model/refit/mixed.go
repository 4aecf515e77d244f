package refit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// A calibrator that can change the predicted class learns the shares of the classes of its fit rows. If classes come in
// runs (orders by customer, batch or day), the fit knows the classes of a few runs, and the newer rows that it is
// tested on are of the same runs: it learns "always this class". So such a method needs rows of every class, enough
// runs of them to tell the shares of later rows, and must not lose accuracy. Methods that keep the predicted class need
// none of that.

const (
	// mixedParts is the number of consecutive parts of equal size whose shares are compared.
	mixedParts = 10
	// maxShareError is the largest error of the shares. On nets of streams in blocks .3 does no harm either; .1 keeps
	// calibrators from streams with short runs (bench/refit, sets blocks and runs).
	maxShareError = .2
	// leastOfClass is the least number of rows of a class.
	leastOfClass = 5
	// classFalls is how far the accuracy of the rows of one class may fall, beyond chance. A model that answers a class
	// too often loses rows of that class when it is corrected: with .05 such models kept their errors (bench/refit, set
	// tuned: noise).
	classFalls = .3
	// classMargin is how much further it may fall once the candidate is in force.
	classMargin = .05
)

// changesClass reports whether a method can change the predicted class of a row.
func changesClass(method string) bool {
	m, err := calibrator.Lookup(method)
	return err == nil && !m.KeepsArgmax
}

// learnsClasses reports whether a method fits something of each class. One that maps the top confidence does not, but
// it can change the class of a row whose confidence falls below that of another class.
func learnsClasses(method string) bool {
	m, err := calibrator.Lookup(method)
	return err == nil && !m.KeepsArgmax && !m.TopLabel
}

// unmixed says why rows, in time order, do not tell the classes of later rows; "" = they do. Each of the parts must
// have rows of every class; together they are the rows.
func unmixed(k int, parts ...[]acc.SampleRow) string {
	rows := parts[0]
	if len(parts) > 1 {
		rows = slices.Concat(parts...)
	}
	counts, n := make([][mixedParts]float64, k), make([]int, k)
	for i := range rows {
		counts[rows[i].Y][i*mixedParts/len(rows)]++
	}
	for _, part := range parts {
		clear(n)
		for i := range part {
			n[part[i].Y]++
		}
		if least := slices.Min(n); least < leastOfClass {
			return fmt.Sprintf("class %d has %d of %d rows, needed %d",
				slices.Index(n, least), least, len(part), leastOfClass)
		}
	}
	if e := sharesError(counts); e > maxShareError {
		return fmt.Sprintf("classes come in runs: their shares are known to %.0f %%, needed %.0f %%", 100*e,
			100*maxShareError)
	}
	return ""
}

// sharesError returns the relative error of the shares of classes, beyond that of rows in no order, from their counts
// in consecutive parts of n rows: with Pearson's statistic of homogeneity
//
//	X² = Σ (O - E)²/E over the cells,  E = rows of the class · rows of the part/n
//	√(max(0, X² - (parts - 1)(classes - 1))/((parts - 1) n))
//
// Runs that are shorter than a part multiply the variance of a share by X² over its degrees of freedom, so this is the
// root of the expected Σ (share - long-run share)²/share. Classes with fewer rows a part than leastOfClass are pooled.
func sharesError(counts [][mixedParts]float64) float64 {
	var cells [][mixedParts]float64
	var rare, parts [mixedParts]float64
	for _, c := range counts {
		add(&parts, &c)
		if sum(&c) < mixedParts*leastOfClass {
			add(&rare, &c)
		} else {
			cells = append(cells, c)
		}
	}
	if sum(&rare) > 0 {
		cells = append(cells, rare)
	}
	n, x2 := sum(&parts), 0.0
	for _, c := range cells {
		for j, o := range c {
			if e := sum(&c) * parts[j] / n; e > 0 {
				x2 += (o - e) * (o - e) / e
			}
		}
	}
	df := (mixedParts - 1) * float64(len(cells)-1)
	return math.Sqrt(max(0, x2-df) / ((mixedParts - 1) * n))
}

func add(to, c *[mixedParts]float64) {
	for j, x := range c {
		to[j] += x
	}
}

func sum(c *[mixedParts]float64) (s float64) {
	for _, x := range c {
		s += x
	}
	return s
}

// recentOfClasses is the number of rows, of all classes, on which a candidate is compared class by class.
const recentOfClasses = 1000

// unsafe says why a candidate may not be published although it has all evidence; "" = it may.
func (r *run) unsafe(p *publisher, c *candidate) (string, error) {
	k, cfg := p.sampled(), &p.stage.cfg
	for _, since := range []int64{r.fitFrom, r.fitTo + 1} {
		if why, err := stage.Biased(k, since, stage.SettledSince); why != "" || err != nil {
			return why, err
		}
	}
	if !learnsClasses(c.method) && !weighsClasses(c.cal) {
		gains, err := gainsByClass(p, c.cal, rowsAt(k, newestOfClasses(k, recentOfClasses)))
		if err != nil {
			return "", err
		}
		if low := worstRuns(k.Sample, gains, max(cfg.FreshRows, leastValidation)); low < 0 {
			return fmt.Sprintf("classes come in runs, and some lose what others gain: by %.5f at least on the next",
				low), nil
		}
	}
	if !changesClass(c.method) {
		return "", nil
	}
	rows := rowsSince(k.Sample, r.fitFrom) // perhaps without the oldest
	slices.SortFunc(rows, stage.CompareRows)
	after := rowsSince(rows, r.fitTo+1)
	if learnsClasses(c.method) {
		for _, part := range [][]acc.SampleRow{rows, after} {
			if why := unmixed(k.K, part); why != "" {
				return why, nil
			}
		}
	}
	return loses(p, c, after)
}

// loses says where a candidate is less accurate than the calibrator in force. Over all rows the fall must be shown to
// be at most max_accuracy_drop; over the rows of one class it must not be shown to be more than classFalls. Both are
// shown at level alpha by the paired difference, that of a class with alpha split over the classes.
func loses(p *publisher, c *candidate, rows []acc.SampleRow) (string, error) {
	var all fall
	cfg, classes := &p.stage.cfg, make([]fall, p.version.K)
	err := p.pairOf(c.cal).each(rows, func(row *acc.SampleRow, was, now stage.RowScore) {
		all.add(was.Hit, now.Hit)
		classes[row.Y].add(was.Hit, now.Hit)
	})
	if err != nil {
		return "", err
	}
	if d, se := all.mean(); d+normal(cfg.Alpha)*se > cfg.MaxAccuracyDrop {
		return fmt.Sprintf("accuracy may fall: by %.4f ± %.4f, allowed %g", d, se, cfg.MaxAccuracyDrop), nil
	}
	z := normal(cfg.Alpha / float64(p.version.K))
	for y := range classes {
		if d, se := classes[y].mean(); d-z*se > classFalls {
			return fmt.Sprintf("accuracy of class %d would fall by %.3f, allowed %g", y, d, classFalls), nil
		}
	}
	return "", nil
}

// normal returns the quantile of the normal distribution that is exceeded with probability alpha.
func normal(alpha float64) float64 { return distuv.UnitNormal.Quantile(1 - alpha) }

// fall counts the rows that one calibrator classifies correctly and another does not.
type fall struct{ n, lost, moved float64 }

func (f *fall) add(old, now bool) {
	f.n++
	switch {
	case old && !now:
		f.lost++
		f.moved++
	case now && !old:
		f.lost--
		f.moved++
	}
}

// mean returns the fall of accuracy and its standard error.
func (f *fall) mean() (d, se float64) {
	if f.n == 0 {
		return 0, 0
	}
	d = f.lost / f.n
	return d, math.Sqrt((f.moved/f.n - d*d) / f.n)
}
