package alarm

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestRowsOfTheFigures: an alert says whether its figures are of all rows since its start. No more than the latest are
// kept.
func TestRowsOfTheFigures(t *testing.T) {
	const pane = 10 * second
	spec := testSpec(stage.SignalRaw)
	for _, c := range []struct {
		panes, since int64 // of 100 rows; the pane before whose end the error began
		text, window string
	}{
		{15, 5, "ECE 0.2311 on the 1000 labelled rows since. ", "since the estimated start"},
		{15, 0, "ECE 0.2311 on the 1500 labelled rows since. ", "since the estimated start"},
		{60, 30, "ECE 0.2311 on the 3000 labelled rows since. ", "since the estimated start"},
		{30, 0, "ECE 0.2311 on the latest 3000 labelled rows. ", "last 3000 rows"},
	} {
		k := &stage.Key{Version: &stage.Version{Shape: acc.Config{SoftBins: 15, SoftTemperature: .01}}, K: 2}
		env := &stage.Env{Pane: pane, Resamples: 20}
		var rows []acc.SampleRow
		for i := range c.panes {
			for range 100 { // all of confidence .7311 and wrong at every other
				y := int32(len(rows) % 2)
				rows = append(rows, acc.SampleRow{LabelTS: i * pane, W: 1, Y: y, Z: []float32{1, 0}})
			}
		}
		recent, err := stage.RecentOfRows(k, rows, pane, 15)
		if err != nil {
			t.Fatal(err)
		}
		k.Recent = *recent
		a := newKeyAlarm(spec, stage.SignalRaw, false, 0)
		observe(t, a, 1, paneOf(15, 40))
		a.fired, a.seen = a.tests.Current(), c.since*pane
		out := (&Stage{env, spec}).describe(k, a, stage.Firing, &stage.Closing{End: c.panes * pane}, 0)
		if !strings.Contains(out.Message, c.text) || out.Window != c.window {
			t.Errorf("%d panes, since that of %d: %s (%s)", c.panes, c.since, out.Message, out.Window)
		}
	}
}

// TestGapsOfTheRows: the bins that a message names have the gaps of the rows that its other figures are of, and stay
// where these have none there, or other bins.
func TestGapsOfTheRows(t *testing.T) {
	bins := make([]metric.Bin, 15)
	bins[14] = metric.Bin{N: 400, W: 400, SumC: 400, SumA: 352}
	evidence := []record.EvidenceBin{{Lo: 2. / 15, Hi: 3. / 15, N: 7, Gap: .2},
		{Lo: 14. / 15, Hi: 1, N: 1300, Gap: -.032}}
	for _, c := range []struct {
		bins []metric.Bin
		want string
	}{
		{bins, "; mostly in (0.933, 1] by -0.120, (0.133, 0.2] by +0.200"},
		{bins[5:], "; mostly in (0.933, 1] by -0.032, (0.133, 0.2] by +0.200"},
		{nil, "; mostly in (0.933, 1] by -0.032, (0.133, 0.2] by +0.200"},
	} {
		if got := worst(ofRows(evidence, c.bins)); got != c.want {
			t.Errorf("%d bins: %q, want %q", len(c.bins), got, c.want)
		}
	}
}

func TestByChance(t *testing.T) {
	const pane = 10 * time.Second
	for _, c := range []struct {
		log   float64
		slice bool
		want  string
	}{
		{math.Log(20), true, "with a probability of at most 1 in 20"},
		{math.Log(4289), true, "with a probability of at most 1 in 4,200"},
		{math.Log(123456), true, "with a probability of at most 1 in 120,000"},
		{math.Log(3.15e6), true, "with a probability of at most 1 in 3.1 million"},
		{400, true, "with a probability of at most 1 in over 1,000 billion"},
		{0, true, "with a probability of at most 1 in 1"},
		{-3, false, "at most once in 0.1 minutes"},
		{math.Log(60), false, "at most once in 10 minutes"},
		{math.Log(8641), false, "at most once in 24 hours"},
		{math.Log(3.156e6), false, "at most once in 360 days"},
		{math.Log(1.07e7), false, "at most once in 3.3 years"},
		{700, false, "at most once in over 1,000 years"},
	} {
		if got := byChance(c.log, c.slice, pane); got != c.want {
			t.Errorf("byChance(%g, %t) = %q, want %q", c.log, c.slice, got, c.want)
		}
	}
}

func TestWorstBins(t *testing.T) {
	bins := []record.EvidenceBin{
		{Lo: .2, Hi: .4, N: 1, Gap: -.6}, {Lo: .4, Hi: .6, N: 10, Gap: -.3}, {Lo: .6, Hi: .8, N: 20, Gap: .1},
		{Lo: .8, Hi: 1, N: 50, Gap: -.2},
	}
	want := "; mostly in (0.8, 1] by -0.200, (0.4, 0.6] by -0.300, (0.6, 0.8] by +0.100 and 1 more"
	if got := worst(bins); got != want {
		t.Errorf("worst = %q, want %q", got, want)
	}
	if got := worst(nil); got != "" {
		t.Errorf("worst of no bins = %q, want nothing", got)
	}
}

// TestResolution: an alert that ends since it stayed quiet does not claim that its error is gone.
func TestResolution(t *testing.T) {
	s := testSpec(stage.SignalRaw)
	s.EpsilonECE, s.EpsilonBin, s.EpsilonAccuracy, s.QuietRows = .02, .05, .03, 50_000
	const left = " would have been: a smaller one may be left"
	for _, c := range []struct {
		signal  string
		unshown bool
		want    string
	}{
		{stage.SignalRaw, false, "raw calibration error is back inside the tolerance " +
			"(ECE beyond chance 0.02, bins 0.05) on the latest rows"},
		{stage.SignalRaw, true, "not shown again in 50000 rows, as an error of twice the tolerance " +
			"(ECE beyond chance 0.02, bins 0.05)" + left},
		{stage.SignalAccuracy, false,
			"accuracy is no longer below the reference by more than the tolerance (0.03) on the latest rows"},
		{stage.SignalAccuracy, true, "not shown again in 50000 rows, as a fall of twice the tolerance (0.03)" + left},
	} {
		a := &keyAlarm{signal: c.signal, unshown: c.unshown}
		if got := a.resolution(s); got != c.want {
			t.Errorf("%s, unshown %t:\n%s\nwant\n%s", c.signal, c.unshown, got, c.want)
		}
	}
}
