package calibrator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/kernel"
)

// FitMethod is what a program may want to know of a method of calibration before it fits one.
type FitMethod struct {
	Name      string // as Fit takes it
	Title     string // for people
	Reference string // author, venue and year; empty for identity
	// KeepsArgmax says that no row changes its class; KeepsRanking that no two classes of a row change places
	// (both may become tied).
	KeepsArgmax, KeepsRanking bool
	// TopLabel says that it calibrates the confidence of the top class only (see Scalar).
	TopLabel bool
	// Scalable says that class-wise loss scaling can wrap it.
	Scalable bool
	// Seeded says that it draws random numbers, from Options.Seed.
	Seeded bool
	// MinRows is the number of rows of positive weight below which the fit is an error. Reports warn earlier.
	MinRows int
	// Parameters is how many numbers are fitted for K classes at the default options.
	Parameters func(k int) int
}

// Suffix after a method's name asks for class-wise loss scaling, as Options.LossScaling.On does.
const Suffix = "+cls"

// fitFunc is a fit as the registry calls it.
type fitFunc[T kernel.Float] func(d Data[T], opts Options) (Calibrator, Report, error)

type entry[T kernel.Float] struct {
	FitMethod
	fit fitFunc[T]
}

// registry lists every method, in the order of Methods. A new method is a file of this package with its words in
// describe.go, a line here and one of parametrics, a line of the graphs of package onnx, a function in a table of
// _maps.py of clients/python and the same in examples/calibrate, its parameters in docs/format.md and its formula in
// docs/math.md; a method for one K is named in classes of _calibrator.py, too. TestMethodsAreKnown and the tests of
// package onnx find what is missing. The page and the golden files that list methods are written anew (internal/config
// and internal/oracle, -update). Refits take the method by name; auto takes it once it is in candidateMethods of
// operators/model/refit.
func registry[T kernel.Float]() []entry[T] {
	return []entry[T]{
		{FitMethod{Name: "identity", Title: "identity", KeepsArgmax: true, KeepsRanking: true, MinRows: 1,
			Parameters: fixed(0)},
			fitIdentity[T]},
		{FitMethod{Name: "temperature", Title: "temperature scaling", Reference: "Guo et al., ICML 2017",
			KeepsArgmax: true, KeepsRanking: true, Scalable: true, MinRows: 1, Parameters: fixed(1)},
			fitTemperature[T]},
		{FitMethod{Name: "temperature_sbece", Title: "temperature scaling by soft-binned ECE",
			Reference:   "Karandikar et al., NeurIPS 2021",
			KeepsArgmax: true, KeepsRanking: true, MinRows: 1, Parameters: fixed(1)},
			general(FitTemperatureSBECE[T])},
		{FitMethod{Name: "ensemble_temperature", Title: "ensemble temperature scaling",
			Reference:   "Zhang, Kailkhura, Han, ICML 2020",
			KeepsArgmax: true, KeepsRanking: true, Scalable: true, MinRows: 1, Parameters: fixed(3)},
			general(FitEnsemble[T])},
		{FitMethod{Name: "class_temperature", Title: "class-based temperature scaling",
			Reference: "Frenkel, Goldberger, EUSIPCO 2021",
			Scalable:  true, MinRows: 1, Parameters: times(1, 0)},
			general(FitClassTemperature[T])},
		{FitMethod{Name: "parameterised_temperature", Title: "parameterised temperature scaling",
			Reference:   "Tomani, Cremers, Buettner, ECCV 2022",
			KeepsArgmax: true, KeepsRanking: true, Scalable: true, Seeded: true, MinRows: 1,
			Parameters: parameterisedSize},
			general(FitParameterised[T])},
		{FitMethod{Name: "vector", Title: "vector scaling", Reference: "Guo et al., ICML 2017",
			MinRows: 1, Parameters: times(2, -1)},
			general(FitVector[T])},
		{FitMethod{Name: "matrix", Title: "matrix scaling with ODIR",
			Reference: "Guo et al., ICML 2017; Kull et al., NeurIPS 2019",
			MinRows:   1, Parameters: square},
			fitODIR(FitMatrix[T])},
		{FitMethod{Name: "dirichlet", Title: "Dirichlet calibration with ODIR", Reference: "Kull et al., NeurIPS 2019",
			MinRows: 1, Parameters: square},
			fitODIR(FitDirichlet[T])},
		{FitMethod{Name: "intra_order_preserving", Title: "diagonal intra-order-preserving function",
			Reference:   "Rahimi et al., NeurIPS 2020",
			KeepsArgmax: true, KeepsRanking: true, MinRows: 1, Parameters: fixed(orderKnots)},
			general(FitIntraOrderPreserving[T])},
		{FitMethod{Name: "platt", Title: "Platt scaling", Reference: "Platt, 1999", TopLabel: true, MinRows: 1,
			Parameters: fixed(2)},
			general(FitPlatt[T])},
		{FitMethod{Name: "beta", Title: "beta calibration", Reference: "Kull, Silva Filho, Flach, AISTATS 2017",
			TopLabel: true, MinRows: 1, Parameters: fixed(3)},
			general(FitBeta[T])},
		{FitMethod{Name: "isotonic", Title: "isotonic regression", Reference: "Zadrozny, Elkan, KDD 2002",
			TopLabel: true, MinRows: 1, Parameters: fixed(2)},
			general(FitIsotonic[T])},
		{FitMethod{Name: "histogram", Title: "histogram binning, equal mass", Reference: "Zadrozny, Elkan, ICML 2001",
			TopLabel: true, MinRows: 1, Parameters: fixed(DefaultBins)},
			fitHistogram[T](EqualMass)},
		{FitMethod{Name: "histogram_width", Title: "histogram binning, equal width",
			Reference: "Zadrozny, Elkan, ICML 2001",
			TopLabel:  true, MinRows: 1, Parameters: fixed(DefaultBins)},
			fitHistogram[T](EqualWidth)},
		{FitMethod{Name: "scaling_binning", Title: "scaling-binning", Reference: "Kumar, Liang, Ma, NeurIPS 2019",
			TopLabel: true, MinRows: 3, Parameters: fixed(DefaultBins)},
			fitScalingBinning[T]},
		{FitMethod{Name: "spline", Title: "spline calibration", Reference: "Gupta et al., ICLR 2021",
			TopLabel: true, MinRows: 1, Parameters: fixed(splineKnots)},
			fitSpline[T]},
		{FitMethod{Name: "metacal_miscoverage", Title: "Meta-Cal, miscoverage rate",
			Reference: "Ma, Blaschko, ICML 2021",
			MinRows:   1, Parameters: fixed(metaCalParameters)},
			fitMetaCal[T](MiscoverageRate)},
		{FitMethod{Name: "metacal_accuracy", Title: "Meta-Cal, coverage accuracy", Reference: "Ma, Blaschko, ICML 2021",
			MinRows: 1, Parameters: fixed(metaCalParameters)},
			fitMetaCal[T](CoverageAccuracy)},
	}
}

// Methods lists every method that Fit knows, in a fixed order: identity, maps of all classes, maps of the top class,
// Meta-Cal.
func Methods() []FitMethod {
	entries := registry[float64]()
	out := make([]FitMethod, len(entries))
	for i, e := range entries {
		out[i] = e.FitMethod
	}
	return out
}

// Lookup returns the method of that name; Suffix is allowed where the method is Scalable.
func Lookup(name string) (FitMethod, error) {
	e, _, err := find[float64](name)
	return e.FitMethod, err
}

// find returns the method, and whether the name ends in Suffix.
func find[T kernel.Float](name string) (entry[T], bool, error) {
	base, scaled := strings.CutSuffix(name, Suffix)
	entries := registry[T]()
	i := slices.IndexFunc(entries, func(e entry[T]) bool { return e.Name == base })
	if i < 0 {
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name
		}
		return entry[T]{}, false, fmt.Errorf("method: %q, allowed are %s", name, strings.Join(names, ", "))
	}
	if scaled && !entries[i].Scalable {
		return entry[T]{}, false, notScalable(base)
	}
	return entries[i], scaled, nil
}

func notScalable(name string) error {
	var allowed []string
	for _, m := range Methods() {
		if m.Scalable {
			allowed = append(allowed, m.Name)
		}
	}
	return fmt.Errorf("method: %s with class-wise loss scaling, allowed are %s", name, strings.Join(allowed, ", "))
}

// Fit fits the method of that name. A name that ends in "+cls", or opts.LossScaling.On, wraps it in class-wise loss
// scaling.
//
// The calibrator's own Method may be shorter than the name: temperature_sbece makes a Temperature, histogram_width a
// Histogram, and both of Meta-Cal's a MetaCal. It returns an error for an unknown name, for a row, label, weight or
// option that is not allowed, and where there is no usable optimum; what makes a fit doubtful is in Report.Warnings.
func Fit[T kernel.Float](method string, d Data[T], opts Options) (Calibrator, Report, error) {
	e, scaled, err := find[T](method)
	if err != nil {
		return nil, Report{}, err
	}
	if scaled {
		opts.LossScaling.On = true
	}
	if opts.LossScaling.On {
		if !e.Scalable {
			return nil, Report{}, notScalable(e.Name)
		}
		return fitLossScaled(e, d, opts)
	}
	return e.fit(d, opts)
}

// general drops the type of what a fit returns, and the typed nil that comes with an error.
func general[T kernel.Float, C Calibrator](fit func(Data[T], Options) (C, Report, error)) fitFunc[T] {
	return func(d Data[T], opts Options) (Calibrator, Report, error) {
		c, r, err := fit(d, opts)
		if err != nil {
			return nil, Report{}, err
		}
		return c, r, nil
	}
}

func fitODIR[T kernel.Float, C Calibrator](fit func(Data[T], ODIR, Options) (C, Report, error)) fitFunc[T] {
	return general(func(d Data[T], opts Options) (C, Report, error) {
		return fit(d, opts.ODIR, opts)
	})
}

func fitHistogram[T kernel.Float](by Binning) fitFunc[T] {
	return general(func(d Data[T], opts Options) (*Histogram, Report, error) {
		return FitHistogram(d, opts.bins(), by, opts)
	})
}

func fitScalingBinning[T kernel.Float](d Data[T], opts Options) (Calibrator, Report, error) {
	return general(func(d Data[T], opts Options) (*ScalingBinning, Report, error) {
		return FitScalingBinning(d, opts.bins(), opts)
	})(d, opts)
}

func fixed(n int) func(int) int          { return func(int) int { return n } }
func times(by, plus int) func(k int) int { return func(k int) int { return by*k + plus } }
func square(k int) int                   { return k*k + k }

func fitIdentity[T kernel.Float](d Data[T], opts Options) (Calibrator, Report, error) {
	s, err := newSample("identity", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	if err := s.describe(Identity{}, 0); err != nil {
		return nil, Report{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	return Identity{}, s.report, nil
}

func fitTemperature[T kernel.Float](d Data[T], opts Options) (Calibrator, Report, error) {
	t, r, err := FitTemperature(d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	report := Report{FitReport: r, Converged: r.Iterations < maxIterations}
	if r.OnBound {
		report.warn("temperature %g, a bound", t.T())
	}
	hits, label := 0, int32(0)
	for i, yi := range d.Labels {
		if d.weight(i) == 0 {
			continue
		}
		label = yi
		if argmax(d.row(i)) == int(yi) {
			hits++
		}
	}
	report.doubt(1, hits, label)
	return t, report, nil
}

func parameterisedSize(k int) int {
	o, _ := Parameterised{}.withDefaults()
	n := network{m: min(o.Top, k) - 1, h: o.Hidden}
	return n.size()
}
