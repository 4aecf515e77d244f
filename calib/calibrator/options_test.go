package calibrator

import (
	"math"
	"strings"
	"testing"
)

// TestOptionsReachTheFit: what Fit passes on is what the method's own function gets.
func TestOptionsReachTheFit(t *testing.T) {
	s := small(t, 600, 3)
	same := func(name string, opts Options, want Calibrator, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Fit(name, NewData(s.z, 3, s.y, nil), opts)
		if err != nil {
			t.Fatal(err)
		}
		plain, _, err := Fit(name, NewData(s.z, 3, s.y, nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, _ := Encode(got)
		b, _ := Encode(want)
		c, _ := Encode(plain)
		if string(a) != string(b) {
			t.Errorf("%s: got %s, want %s", name, a, b)
		}
		if string(a) == string(c) {
			t.Errorf("%s: the options change nothing: %s", name, a)
		}
	}
	spline, _, err := FitSpline(NewData(s.z, 3, s.y, nil), SplineSettings{Knots: 4, Residual: true}, Options{})
	same("spline", Options{Knots: 4, Residual: true}, spline, err)

	base := func(z []float64, k int, y []int32, w []float64) (Calibrator, error) {
		c, _, err := FitTemperatureSBECE(NewData(z, k, y, w), Options{})
		return c, err
	}
	set := MetaCalSettings{Constraint: MiscoverageRate, Target: 0.2, Delta: 0.1, RankEvery: 2, Base: base}
	meta, _, err := FitMetaCal(NewData(s.z, 3, s.y, nil), set, Options{})
	same("metacal_miscoverage", Options{Miscoverage: 0.2, MetaCal: MetaCalSettings{Delta: 0.1, RankEvery: 2,
		Base: base}}, meta, err)
	set = MetaCalSettings{Constraint: CoverageAccuracy, RankEvery: 3}
	meta, _, err = FitMetaCal(NewData(s.z, 3, s.y, nil), set, Options{})
	same("metacal_accuracy", Options{MetaCal: MetaCalSettings{RankEvery: 3}}, meta, err)

	soft := SoftBins{Bins: 5, Temperature: 0.05, Norm: 1}
	ts, _, err := FitTemperatureSBECE(NewData(s.z, 3, s.y, nil), Options{SoftBins: soft})
	same("temperature_sbece", Options{SoftBins: soft}, ts, err)
}

func TestOptionsThatAreRefused(t *testing.T) {
	s := small(t, 60, 3)
	for _, c := range []struct {
		method, want string
		opts         Options
	}{
		{"temperature_sbece", "soft bins: -1, allowed 1..1000", Options{SoftBins: SoftBins{Bins: -1}}},
		{"temperature_sbece", "soft bins: 1001, allowed", Options{SoftBins: SoftBins{Bins: 1001}}},
		{"temperature_sbece", "temperature -1, allowed", Options{SoftBins: SoftBins{Temperature: -1}}},
		{"temperature_sbece", "temperature NaN, allowed", Options{SoftBins: SoftBins{Temperature: math.NaN()}}},
		{"temperature_sbece", "norm 0.5, allowed", Options{SoftBins: SoftBins{Norm: 0.5}}},
		{"metacal_accuracy", `constraint "miscoverage`, Options{MetaCal: MetaCalSettings{Constraint: MiscoverageRate}}},
		{"metacal_miscoverage", "target 0.3", Options{MetaCal: MetaCalSettings{Target: 0.3}}},
		{"metacal_miscoverage", "delta: 2", Options{MetaCal: MetaCalSettings{Delta: 2}}},
		{"dirichlet", "regularisation -1, allowed", Options{ODIR: ODIR{Diagonal: -1}}},
	} {
		if _, _, err := Fit(c.method, NewData(s.z, 3, s.y, nil), c.opts); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: error %v, want one with %q", c.method, c.opts.SoftBins, err, c.want)
		}
	}
}
