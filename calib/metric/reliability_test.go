package metric_test

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

func TestReliability(t *testing.T) {
	bins := metric.EqualWidth([]float64{.4, .9, .9, .95}, []bool{true, true, false, true}, nil, 2)
	d := metric.Reliability(bins, metric.Wilson)
	lo, hi := metric.Wilson(2, 3)
	near(t, "acc", d[1].Acc, 2./3, tol)
	near(t, "conf", d[1].Conf, 2.75/3, tol)
	if d[1].AccLo != lo || d[1].AccHi != hi || d[1].Lo != .5 || d[1].Hi != 1 || d[1].N != 3 {
		t.Errorf("got %+v", d[1])
	}
	empty := metric.Reliability(make([]metric.Bin, 1), metric.Wilson)[0]
	if !math.IsNaN(empty.Acc) || empty.AccLo != 0 || empty.AccHi != 1 {
		t.Errorf("empty bin: %+v", empty)
	}
	// Equal weights of any size have the interval of the rows.
	weighted := metric.Reliability(metric.EqualWidth([]float64{.9, .9, .95}, []bool{true, false, true},
		[]float64{4, 4, 4}, 1), metric.Wilson)[0]
	near(t, "weighted lo", weighted.AccLo, lo, tol)
	near(t, "weighted hi", weighted.AccHi, hi, tol)
}
