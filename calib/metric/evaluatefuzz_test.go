package metric_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// fuzzScores are what most bytes stand for; the others take eight bytes of their own, any float64.
var fuzzScores = []float64{
	0, math.Copysign(0, -1), 1, -1, .5, .25, 1. / 3, 2. / 3, .2, .4, .6, 1. / 15, 2. / 15, 14. / 15, 1. / 3600,
	3599. / 3600,
	80, -80, 1e4, -1e30, 1e30, math.MaxFloat32, 1 - 0x1p-53, 0x1p-1074, 1e-30, 745, -746, .1, .9, math.MaxFloat64,
	math.NaN(), math.Inf(1),
}

var fuzzWeights = []float64{1, 1, 1, 0, 2, 3, .5, .1, 1e-30, 1e30, 1e-100, 1e100, -1, math.NaN(), 1e101}

// fuzzRows makes a table of the bytes: classes, form and weights, then by row a label, a weight and scores.
func fuzzRows(data []byte) metric.Rows {
	if len(data) < 2 {
		return metric.Rows{K: 1}
	}
	r := metric.Rows{K: 1 + int(data[0])%6, Probs: data[1]&1 == 1, F64: []float64{}}
	weighted := data[1]&2 != 0
	data = data[2:]
	next := func() (b byte) {
		if len(data) > 0 {
			b, data = data[0], data[1:]
		}
		return b
	}
	for len(data) > 0 && len(r.Labels) < 64 {
		r.Labels = append(r.Labels, int32(int(next())%(r.K+1))-1)
		if b := next(); weighted {
			r.W = append(r.W, fuzzWeights[int(b)%len(fuzzWeights)])
		}
		left := 1.0
		for k := range r.K {
			b := next()
			v := fuzzScores[int(b)%len(fuzzScores)]
			switch {
			case r.Probs && k == r.K-1 && b < 200:
				v = max(0, left)
			case b >= 248 && len(data) >= 8:
				v = math.Float64frombits(binary.LittleEndian.Uint64(data))
				data = data[8:]
			}
			left -= v
			r.F64 = append(r.F64, v)
		}
	}
	return r
}

// FuzzEvaluate holds every key to its range, and to NaN only where it is undefined, in both types; and the JSON to be
// valid.
func FuzzEvaluate(f *testing.F) {
	for _, setting := range []uint8{0, 1, 7, 201} { // odd ones ask for intervals
		f.Add([]byte{1, 0, 1, 0, 4, 5, 2, 0, 16, 17}, setting)
	}
	f.Add([]byte{2, 3, 1, 8, 4, 5, 0, 2, 9, 2, 3, 0, 1, 3, 1, 11, 12, 0}, uint8(7))
	f.Add([]byte{0, 2, 1, 1, 2, 1, 6, 3}, uint8(200))
	f.Fuzz(func(t *testing.T, data []byte, setting uint8) {
		r := fuzzRows(data)
		o := metric.Options{
			Bins: []int{0, 1, 7, 3600}[setting%4], SoftBins: []int{0, 1, 50}[setting%3],
			Norm:            []float64{0, 1, 300}[setting/4%3],
			SoftTemperature: []float64{0, 1e-300, 1e-9, 1e300}[setting/16%4], Resamples: 3,
			CSF:         []string{"", metric.Margin, metric.NegEnt}[setting/64%3],
			Uncertainty: setting&1 == 1, Detail: true,
		}
		for _, rows := range []metric.Rows{r, narrow(r)} {
			report, err := metric.Evaluate(rows, o)
			if err != nil {
				continue
			}
			text, err := json.Marshal(report)
			if err != nil || !json.Valid(text) {
				t.Fatalf("%v: %s", err, text)
			}
			checkRange(t, report, report.N == 0)
		}
	})
}

func checkRange(t *testing.T, r metric.Report, empty bool) {
	t.Helper()
	limits := map[string]float64{"brier": 2, "nll": math.Inf(1), "cwece": 2, "cwece_l2": 2}
	for _, v := range r.Values() {
		high, ok := limits[v.Key]
		if !ok {
			high = 1
		}
		const rounding = 1e-9
		either := v.Key == "auroc" || v.Key == "fpr95" // NaN where all rows are right or all are wrong
		if math.IsNaN(v.Value) && (empty || either && (r.Accuracy == 0 || r.Accuracy == 1 ||
			math.Min(r.Accuracy, 1-r.Accuracy) < 1e-12)) {
			continue
		}
		if empty || !(v.Value >= 0 && v.Value <= high+rounding) {
			t.Fatalf("%s is %g of %d rows, accuracy %g", v.Key, v.Value, r.N, r.Accuracy)
		}
	}
	near := func(what string, low, high float64) {
		if !empty && low > high+1e-9 {
			t.Fatalf("%s: %.17g above %.17g", what, low, high)
		}
	}
	near("ece, ece_l2", r.ECE, r.ECEL2)
	near("ece_l2, mce", r.ECEL2, r.MCE)
	near("ace, ace_l2", r.ACE, r.ACEL2)
	near("debiased_l2, ace_l2", r.DebiasedL2, r.ACEL2)
	near("sbece_bin, sbece_lb", r.SBECEBin, r.SBECELB)
	near("eaurc, aurc", r.EAURC, r.AURC)
	near("ece_lo, ece", r.ECELo, r.ECE)
	near("ece, ece_hi", r.ECE, r.ECEHi)
	for _, iv := range r.Intervals {
		if !empty && !(iv.Lo <= iv.Hi+1e-12 && iv.Lo >= 0 && iv.Null >= 0) {
			t.Fatalf("%s: %+v", iv.Key, iv.Interval)
		}
	}
}
