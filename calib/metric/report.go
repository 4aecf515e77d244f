package metric

import (
	"encoding/json"
	"math"
	"strconv"
)

// Report is the metrics of a set of rows, as fractions, not percent; NaN where undefined.
type Report struct {
	N int64
	// ZeroRows are rows whose label has the probability 0: NLL is about them.
	ZeroRows                                     int64
	Accuracy, NLL, Brier                         float64
	ECE, ECEL2, MCE, ECENull, ECELo, ECEHi       float64
	ACE, ACEL2, CWECE, CWECEL2, DebiasedL2       float64
	KS, Sweep, SweepL2, SmECE                    float64
	SBECEBin, SBECELB, AURC, EAURC, AUROC, FPR95 float64
	// Intervals are the uncertainties of all calibration errors; nil unless asked for.
	Intervals []KeyInterval
	// Detail is what the metrics were read from; nil unless asked for.
	Detail *Detail
}

// Value is one metric under its key in the output of `plumbline eval --json`.
type Value struct {
	Key   string
	Value float64
}

// Values returns the metrics but n, in the order of the output.
func (r Report) Values() []Value {
	return []Value{
		{"accuracy", r.Accuracy}, {"nll", r.NLL}, {"brier", r.Brier},
		{"ece", r.ECE}, {"ece_l2", r.ECEL2}, {"mce", r.MCE},
		{"ece_null", r.ECENull}, {"ece_lo", r.ECELo}, {"ece_hi", r.ECEHi},
		{"ace", r.ACE}, {"ace_l2", r.ACEL2}, {"cwece", r.CWECE}, {"cwece_l2", r.CWECEL2},
		{"debiased_l2", r.DebiasedL2}, {"ks", r.KS}, {"sweep", r.Sweep}, {"sweep_l2", r.SweepL2},
		{"smece", r.SmECE}, {"sbece_bin", r.SBECEBin}, {"sbece_lb", r.SBECELB},
		{"aurc", r.AURC}, {"eaurc", r.EAURC}, {"auroc", r.AUROC}, {"fpr95", r.FPR95},
	}
}

// MarshalJSON writes one object: n, then Values by key with NaN as null, then zero_rows if there are any, the
// intervals if there are any ("intervals": {key: {null, null_hi, lo, hi}}), and the detail if there is one (bins,
// soft_bins, cdf).
func (r Report) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt([]byte(`{"n":`), r.N, 10)
	for _, v := range r.Values() {
		b = append(b, ',', '"')
		b = append(b, v.Key...)
		b = append(b, `":`...)
		b = appendNumber(b, v.Value)
	}
	if r.ZeroRows > 0 {
		b = strconv.AppendInt(append(b, `,"zero_rows":`...), r.ZeroRows, 10)
	}
	if r.Intervals != nil {
		b = appendIntervals(append(b, `,"intervals":`...), r.Intervals)
	}
	if r.Detail != nil {
		detail, err := json.Marshal(r.Detail)
		if err != nil {
			return nil, err
		}
		b = append(b, ',')
		return append(b, detail[1:]...), nil // the detail's fields join the object
	}
	return append(b, '}'), nil
}

func appendIntervals(b []byte, ivs []KeyInterval) []byte {
	sep := byte('{')
	for _, iv := range ivs {
		b = append(append(b, sep, '"'), iv.Key...)
		b = appendNumber(append(b, `":{"null":`...), iv.Null)
		b = appendNumber(append(b, `,"null_hi":`...), iv.NullHi)
		b = appendNumber(append(b, `,"lo":`...), iv.Lo)
		b = append(appendNumber(append(b, `,"hi":`...), iv.Hi), '}')
		sep = ','
	}
	return append(b, '}')
}

func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	text, _ := json.Marshal(v) // a finite float64 always marshals
	return append(b, text...)
}

// Detail is the reliability diagram, the soft-bin sums and the binned CDF of the maximum probability.
type Detail struct {
	Bins     []DetailBin `json:"bins"`
	SoftBins DetailSoft  `json:"soft_bins"`
	CDF      DetailCDF   `json:"cdf"`
}

// DetailBin is one bin (Lo, Hi]; conf and acc are 0 where it is empty, AccLo and AccHi the 95 % Wilson interval.
type DetailBin struct {
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	N     int64   `json:"n"`
	Conf  float64 `json:"conf"`
	Acc   float64 `json:"acc"`
	AccLo float64 `json:"acc_lo"`
	AccHi float64 `json:"acc_hi"`
}

// DetailSoft are the soft-bin sums S_j, Σu_j c, Σu_j a, Σu_j c².
type DetailSoft struct {
	Temperature float64   `json:"temperature"`
	S           []float64 `json:"s"`
	UC          []float64 `json:"uc"`
	UA          []float64 `json:"ua"`
	UC2         []float64 `json:"uc2"`
}

// DetailCDF is Ĝ_ν at the edges 0, 1/50, …, 1; both lists are empty where there is no row.
type DetailCDF struct {
	Nu   float64   `json:"nu"`
	Grid []float64 `json:"grid"`
	G    []float64 `json:"g"`
}

func newDetail(bins []Bin, soft SoftSums, s *scanned, opt Options) *Detail {
	d := &Detail{
		SoftBins: DetailSoft{opt.SoftTemperature, soft.S, soft.UC, soft.UA, soft.UC2},
		CDF:      DetailCDF{Nu: opt.CDFNu, Grid: []float64{}, G: []float64{}},
	}
	for _, b := range Reliability(bins, Wilson) {
		if b.N == 0 {
			b.Conf, b.Acc = 0, 0
		}
		d.Bins = append(d.Bins, DetailBin{b.Lo, b.Hi, b.N, b.Conf, b.Acc, b.AccLo, b.AccHi})
	}
	if len(s.c) > 0 {
		d.CDF.Grid, d.CDF.G = CDFCurve(CDFWeights(s.c, s.w, CDFBins), opt.CDFNu)
	}
	return d
}
