package metric_test

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// refSoft is SB-ECE by its definition: memberships without a shift, sums over rows and bins.
func refSoft(c []float64, a []bool, m int, temp, p float64) (bin, lb float64) {
	n := len(c)
	u := make([][]float64, n)
	for i := range c {
		var sum float64
		for j := range m {
			d := c[i] - (float64(j)+0.5)/float64(m)
			u[i] = append(u[i], math.Exp(-d*d/temp))
			sum += u[i][j]
		}
		for j := range m {
			u[i][j] /= sum
		}
	}
	for j := range m {
		var s, ua, uc float64
		for i := range c {
			s += u[i][j]
			ua += u[i][j] * num(a[i])
			uc += u[i][j] * c[i]
		}
		bin += s / float64(n) * math.Pow(math.Abs(ua/s-uc/s), p)
		for i := range c {
			lb += u[i][j] / float64(n) * math.Pow(math.Abs(ua/s-c[i]), p)
		}
	}
	return math.Pow(bin, 1/p), math.Pow(lb, 1/p)
}

func TestSoftBinsAgainstDefinition(t *testing.T) {
	for _, n := range []int{1, 2, 50} {
		for _, temp := range []float64{0.01, 0.1, 10} {
			c, a := randomRows(n, 0, uint64(n))
			for _, m := range []int{1, 15} {
				s := metric.SoftBins(c, a, nil, m, temp)
				for _, p := range []float64{1, 2, 3.5} {
					bin, lb := refSoft(c, a, m, temp, p)
					near(t, "sbece_bin", metric.SBECEBin(s, p), bin, 1e-10)
					near(t, "sbece_lb rows", metric.SBECELBRows(c, a, nil,
						metric.SoftNorm{Bins: m, Temperature: temp, P: p}), lb, 1e-10)
				}
				_, lb := refSoft(c, a, m, temp, 2)
				near(t, "sbece_lb", metric.SBECELB(s), lb, 1e-10)
			}
		}
	}
}

func TestSoftBinsBecomeHard(t *testing.T) {
	// As T → 0 the soft bins are the equal-width ones (no c is on an edge), at any T without under- or overflow.
	c, a := randomRows(500, 0, 3)
	for _, temp := range []float64{1e-7, 1e-300} {
		s := metric.SoftBins(c, a, nil, 15, temp)
		near(t, "sbece_bin", metric.SBECEBin(s, 1), metric.ECE(metric.EqualWidth(c, a, nil, 15)), 1e-3)
	}
	u := make([]float64, 15)
	for _, ci := range []float64{0, 1, 0.5} {
		metric.SoftWeights(u, ci, 1e-300)
		var sum float64
		for _, v := range u {
			sum += v
		}
		near(t, "Σu", sum, 1, tol)
	}
}

func TestSoftWithoutRows(t *testing.T) {
	s := metric.SoftBins(nil, nil, nil, 3, 0.01)
	if !math.IsNaN(metric.SBECEBin(s, 2)) || !math.IsNaN(metric.SBECELB(s)) ||
		!math.IsNaN(metric.SBECELBRows(nil, nil, nil, metric.SoftNorm{Bins: 3, Temperature: .01, P: 1})) {
		t.Error("no rows: want NaN")
	}
}

func TestCDFWeights(t *testing.T) {
	for i := range 50 {
		edge := float64(i) / 50
		h := metric.CDFWeights([]float64{edge}, nil, 50)
		if h[i] != 1 {
			t.Errorf("edge %v is not in the bin it opens", edge)
		}
		if i > 0 {
			if h := metric.CDFWeights([]float64{math.Nextafter(edge, 0)}, nil, 50); h[i-1] != 1 {
				t.Errorf("below edge %v: not in the bin before", edge)
			}
		}
	}
	if h := metric.CDFWeights([]float64{1, 2, -1}, nil, 50); h[49] != 2 || h[0] != 1 {
		t.Errorf("ends: got %v", h)
	}
}

func TestBinnedCDF(t *testing.T) {
	// Two bins, centres ¼ and ¾, counts 1 and 3, ν = ¼: Ĝ(¼) = (σ(0) + 3σ(-2))/4.
	h := []float64{1, 3}
	near(t, "G(1/4)", metric.BinnedCDF(h, 0.25, 0.25), (0.5+3/(1+math.Exp(2)))/4, tol)
	near(t, "low clamp", metric.BinnedCDF(h, 1e-3, 0), 0.2, tol)
	near(t, "high clamp", metric.BinnedCDF(h, 1e-3, 1), 0.8, tol)
	if !math.IsNaN(metric.BinnedCDF(make([]float64, 50), 0.1, 0.5)) {
		t.Error("no rows: want NaN")
	}
	grid, g := metric.CDFCurve(metric.CDFWeights([]float64{0.3, 0.5, 0.9, 1}, nil, 50), 0.05)
	if len(grid) != 51 || grid[0] != 0 || grid[50] != 1 {
		t.Fatalf("grid %v", grid)
	}
	for i := 1; i < len(g); i++ {
		if g[i] < g[i-1] || math.Abs(math.Log1p(-g[i])) > 10 {
			t.Errorf("G falls or is not clamped at %g: %g after %g", grid[i], g[i], g[i-1])
		}
	}
}
