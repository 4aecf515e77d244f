package shift_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/realdata"
)

const classes = 10

// realRows are real logits of 10,000 rows of CIFAR-10 with labels.
type realRows struct {
	z []float32
	y []int32
}

func readReal(t *testing.T, file string, arrays ...string) map[string]realRows {
	t.Helper()
	in := realdata.Arrays(t, file, append(slices.Clone(arrays), "test_labels")...)
	out := map[string]realRows{}
	for _, name := range arrays {
		out[name] = realRows{in[name].F32, in["test_labels"].Int}
	}
	return out
}

// scored are rows as tables take them: what the model says, its symbol, probabilities after calibration.
type scored struct {
	top, symbol []int
	conf        []float64
	p           []float64
}

func (r realRows) score(t *testing.T, cal calibrator.Calibrator) scored {
	n := len(r.y)
	s := scored{p: make([]float64, n*classes)}
	z, p := make([]float64, classes), make([]float64, classes)
	for i := range n {
		for j := range z {
			z[j] = float64(r.z[i*classes+j])
		}
		row, ok := kernel.Logits(z, p)
		if !ok {
			t.Fatal("no logits")
		}
		s.top, s.conf = append(s.top, row.Arg), append(s.conf, row.Conf)
		s.symbol = append(s.symbol, row.Arg*acc.Bands+acc.BandOf(row.Conf))
		cal.Apply(s.p[i*classes:(i+1)*classes], z)
	}
	return s
}

// pick draws odd rows by the shares q of labels, none twice: as many as there are.
func pick(rng *rand.Rand, y []int32, q []float64) []int {
	by := make([][]int, classes)
	for i := 1; i < len(y); i += 2 {
		by[y[i]] = append(by[y[i]], i)
	}
	m := math.Inf(1)
	for j, rows := range by {
		m = min(m, float64(len(rows))/q[j])
		rng.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	}
	var out []int
	for j, rows := range by {
		out = append(out, rows[:int(q[j]*m)]...)
	}
	return out
}

// randomShares draws shares of which the smaller a is, the fewer are not small.
func randomShares(rng *rand.Rand, a float64) []float64 {
	q := make([]float64, classes)
	var sum float64
	for j := range q {
		q[j] = rng.ExpFloat64() * math.Pow(rng.Float64(), 1/a)
		sum += q[j]
	}
	for j := range q {
		q[j] /= sum
	}
	return q
}

func top(p []float64) (at int) {
	for j, x := range p {
		if x > p[at] {
			at = j
		}
	}
	return at
}

// table counts even rows by symbol and label, and the picked ones by symbol.
func table(ref scored, y []int32, now scored, picked []int, soft bool) shift.Table {
	t := shift.Table{K: classes, Joint: make([]float64, classes*acc.Bands*classes),
		Now: make([]float64, classes*acc.Bands)}
	for i := range t.Now {
		t.Says = append(t.Says, i/acc.Bands)
	}
	for i := 0; i < len(y); i += 2 {
		if !soft {
			t.Joint[ref.symbol[i]*classes+int(y[i])]++
			continue
		}
		for j, p := range ref.p[i*classes : (i+1)*classes] {
			t.Joint[ref.symbol[i]*classes+j] += p
		}
	}
	t.Soft = soft
	for _, i := range picked {
		t.Now[now.symbol[i]]++
	}
	return t
}

func fitted(t *testing.T, r realRows) calibrator.Calibrator {
	var z []float32
	var y []int32
	for i := 0; i < len(r.y); i += 2 {
		z, y = append(z, r.z[i*classes:(i+1)*classes]...), append(y, r.y[i])
	}
	cal, _, err := calibrator.Fit("vector", calibrator.NewData(z, classes, y, nil), calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cal
}

// TestRealLabelShift resamples real rows by class: shares and accuracy are found, within their intervals about as
// often as they say, where the confidence alone is off; the assumption is rejected about as often as the level says.
func TestRealLabelShift(t *testing.T) {
	const file, name = "c10jpeg_resnet_logits.npz", "resnet20"
	r := readReal(t, file, name)[name]
	cal := fitted(t, r)
	s := r.score(t, cal)
	prior := make([]float64, classes)
	for i := 0; i < len(r.y); i += 2 {
		prior[r.y[i]] += 2 / float64(len(r.y))
	}
	const trials = 60
	type tally struct {
		held, rejected int
		off, far       float64
	}
	got := map[string]*tally{"bbse": {}, "em": {}, "em soft": {}, "em rows": {}}
	var plain, moved, size float64
	for trial := range trials {
		rng := rand.New(rand.NewPCG(uint64(trial), 9))
		q := randomShares(rng, .7)
		rows := pick(rng, r.y, q)
		m := float64(len(rows))
		size += m / trials
		actual := make([]float64, classes)
		var p []float64
		var right, conf, rightCal float64 // rows have another class on top after calibration
		for _, i := range rows {
			actual[r.y[i]] += 1 / m
			p = append(p, s.p[i*classes:(i+1)*classes]...)
			conf += s.p[i*classes+s.top[i]] / m
			if s.top[i] == int(r.y[i]) {
				right += 1 / m
			}
			if top(s.p[i*classes:(i+1)*classes]) == int(r.y[i]) {
				rightCal += 1 / m
			}
		}
		plain += math.Abs(conf-right) / trials
		for j := range q {
			moved += math.Abs(actual[j]-prior[j]) / 2 / trials
		}
		for what, estimate := range map[string]func() (shift.Estimate, error){
			"bbse":    func() (shift.Estimate, error) { return shift.BBSE(table(s, r.y, s, rows, false)) },
			"em":      func() (shift.Estimate, error) { return shift.EM(table(s, r.y, s, rows, false)) },
			"em soft": func() (shift.Estimate, error) { return shift.EM(table(s, r.y, s, rows, true)) },
			"em rows": func() (shift.Estimate, error) { return shift.EMRows(p, prior) },
		} {
			e, err := estimate()
			if err != nil {
				t.Fatal(err)
			}
			x, right := got[what], right
			if what == "em rows" {
				right = rightCal
			}
			if e.Lo <= right && right <= e.Hi {
				x.held++
			}
			if e.Fit.P < .01 {
				x.rejected++
			}
			x.off += math.Abs(e.Accuracy-right) / trials
			for j := range actual {
				x.far += math.Abs(e.Shares[j]-actual[j]) / 2 / trials
			}
		}
	}
	t.Logf("%.0f rows; shares move by %.3f (total variation), mean calibrated confidence is off by %.4f", size, moved,
		plain)
	for what, x := range got {
		t.Logf("%s: accuracy off by %.4f, shares by %.4f; %d of %d intervals hold, %d rejected at 1 %%", what, x.off,
			x.far, x.held, trials, x.rejected)
		if x.off > plain/2 || x.far > moved/4 {
			t.Errorf("%s: accuracy is off by %v (confidence alone by %v), shares by %v of %v", what, x.off, plain,
				x.far, moved)
		}
	}
	// The counted methods know their noise: 95 % less four binomial standard errors. Those of a calibrator leave its
	// own errors out.
	for _, what := range []string{"bbse", "em"} {
		if x := got[what]; x.held < trials*84/100 || x.rejected > 5 {
			t.Errorf("%s: %d of %d intervals hold the accuracy, %d rejected at 1 %%", what, x.held, trials, x.rejected)
		}
	}
}

// TestRealCorruption: where images are corrupted, and the shares of the classes are as ever, the assumption is
// rejected.
func TestRealCorruption(t *testing.T) {
	names := []string{"resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3", "resnet20_contrast_s3",
		"resnet20_gauss_blur_s3", "resnet20_gauss_blur_s5"}
	all := readReal(t, "c10jpeg_resnet_logits.npz", append(slices.Clone(names), "resnet20")...)
	clean := all["resnet20"].score(t, calibrator.Identity{})
	flat := slices.Repeat([]float64{.1}, classes)
	for _, name := range append(names, "resnet20") {
		r := all[name]
		now := r.score(t, calibrator.Identity{})
		rows := pick(rand.New(rand.NewPCG(4, 4)), r.y, flat)
		for _, method := range []func(shift.Table) (shift.Estimate, error){shift.BBSE, shift.EM} {
			e, err := method(table(clean, r.y, now, rows, false))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %s: X² %.0f of %.0f degrees, accuracy %.3f", name, e.Method, e.Fit.Statistic, e.Fit.DF,
				e.Accuracy)
			if rejected := e.Fit.P < 1e-6; rejected != (name != "resnet20") {
				t.Errorf("%s, %s: p = %v", name, e.Method, e.Fit.P)
			}
		}
	}
}
