package history

import (
	"math"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/record"
)

// fullSnapshot has what snapshots with the default bins have.
func fullSnapshot(i int) record.Snapshot {
	x := func() *float64 { v := float64(i); return &v }
	metrics := func(detail bool) record.Metrics {
		m := record.Metrics{Accuracy: x(), MeanConfidence: x(), NLL: x(), Brier: x(), ECE: x(),
			ECENull: x(), ECELo: x(), ECEHi: x(), ECEL2: x(), MCE: x(), CWECE: x(), CWECEL2: x(), SBECEBin: x(),
			SBECELB: x(), AURC: x(), Bins: make([]record.Bin, 15)}
		if detail {
			bins := func() []float64 { return make([]float64, 15) }
			m.SoftBins = &record.SoftBins{S: bins(), UC: bins(), UA: bins(), UC2: bins()}
			m.CDF = &record.CDF{}
			m.CDF.Grid, m.CDF.G = metric.CDFCurve(make([]float64, metric.CDFBins), .1)
		}
		return m
	}
	s := rowsSnap(i)
	s.Raw, s.Calibrated = metrics(true), metrics(false)
	s.InForce = &record.InForce{Method: "temperature", Raw: metrics(false), Calibrated: metrics(false)}
	s.Unlabelled = &record.Unlabelled{Distances: map[string]record.Distances{"msp": {}, "margin": {}, "negent": {}}}
	return s
}

// TestMemoryOfSeries compares the memory of the snapshots of a key's window with docs/operations.md, Sizing.
func TestMemoryOfSeries(t *testing.T) {
	testsize.Slow(t)
	const keys, documented = 20, 1.7e6
	before := testsize.HeapInUse()
	h := New(Config{Backlog: 1})
	for k := range keys {
		for i := range 400 {
			s := fullSnapshot(i)
			s.Slice = string(rune('a' + k))
			h.AddSnapshot(s)
		}
	}
	got := (testsize.HeapInUse() - before) / keys
	t.Logf("%.0f bytes a key and window, documented are %.0f", got, documented)
	if math.Abs(got/documented-1) > .2 {
		t.Errorf("%.0f bytes a key and window, documented are %.0f", got, documented)
	}
	runtime.KeepAlive(h)
}
