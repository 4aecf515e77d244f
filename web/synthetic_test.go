package web

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

var t0 = time.Date(2024, 3, 5, 11, 30, 0, 0, time.UTC)

const pane = 10 * time.Second

func stamp(d time.Duration) record.Time { return record.At(t0.Add(d).UnixNano()) }

func ptr(v float64) *float64 { return &v }

// metrics returns metrics of n rows whose accuracy is its confidence less gap; the gap grows towards confidence ½.
func metrics(n int64, gap, wiggle float64) record.Metrics {
	m := record.Metrics{N: n}
	share := []float64{0, 0, 0, .004, .012, .02, .03, .035, .04, .05, .06, .08, .12, .2, .349}
	var ece, acc, conf float64
	for i, s := range share {
		lo, hi := float64(i)/15, float64(i+1)/15
		b := record.Bin{Lo: lo, Hi: hi, N: int64(s * float64(n))}
		if b.N > 0 {
			b.Conf = lo + .6*(hi-lo)
			b.Acc = b.Conf - gap*4*b.Conf*(1-b.Conf) + .01*math.Sin(wiggle+float64(3*i))
			se := 1.96 * math.Sqrt(b.Acc*(1-b.Acc)/float64(b.N))
			b.AccLo, b.AccHi = math.Max(0, b.Acc-se), math.Min(1, b.Acc+se)
		}
		m.Bins = append(m.Bins, b)
		ece += s * math.Abs(b.Acc-b.Conf)
		acc += s * b.Acc
		conf += s * b.Conf
	}
	null := .55 / math.Sqrt(float64(n))
	m.Accuracy, m.MeanConfidence, m.ECE = ptr(acc), ptr(conf), ptr(ece+.4*null)
	m.NLL, m.Brier, m.CWECE = ptr(.38+2*ece), ptr(.21+ece/2), ptr(.004+ece/3)
	m.ECENull, m.ECENullHi = ptr(null), ptr(1.6*null)
	m.ECELo, m.ECEHi = ptr(math.Max(0, *m.ECE-1.3*null)), ptr(*m.ECE+1.3*null)
	return m
}

// synthetic fills a history with an hour of a model that drifts at minute 20, alarms at 23, is refitted at 25 and
// resolves at 30; slices and a second window have a little of it, and a second version is young.
func synthetic() *history.History {
	h := history.New(history.Config{})
	const m, v = "digits-resnet20", "2024-03-01"
	for i := 1; i <= 360; i++ {
		for _, slice := range []string{"", "region=eu", "region=us"} {
			if slice == "" || i > 300 {
				h.AddSnapshot(snapshotAt(m, v, slice, time.Duration(i)*pane))
			}
		}
	}
	for i := 1; i <= 12; i++ {
		s := snapshotAt(m, v, "", time.Duration(i)*5*time.Minute)
		s.Window = record.Window{Name: "5m", Kind: "time", Start: stamp(time.Duration(i-1) * 5 * time.Minute),
			End: s.At, Final: true}
		h.AddSnapshot(s)
	}
	h.AddSnapshot(snapshotAt(m, "2024-02-10", "", 90*pane))
	decisions(h, m, v)
	return h
}

func snapshotAt(model, version, slice string, d time.Duration) record.Snapshot {
	min := d.Minutes()
	gap := .004 + .16*(1/(1+math.Exp(-(min-21)/.7)))
	calGap := gap
	s := record.Snapshot{
		Schema: 1, Model: model, Version: version, Slice: slice, At: stamp(d),
		Window:      record.Window{Name: "last-5000", Kind: "rows", Start: stamp(d - 5*time.Minute), End: stamp(d)},
		Predictions: 5812, Labelled: 5043, Coverage: ptr(.8677), Late: 12,
		Lag: record.Lag{Mean: 61, P50: 42.5, P90: 151, P99: 610},
	}
	if min > 25 {
		calGap = .004 + (gap-.004)*math.Exp(-(min-25)/1.5)
		s.InForce = &record.InForce{
			Version: 3, Method: "temperature", Temperature: 1.6187, EffectiveFrom: stamp(25 * time.Minute),
			Raw: metrics(4000, gap, 0), Calibrated: metrics(4000, .004, 0),
		}
	}
	s.Raw, s.Calibrated = metrics(5043, gap, min/2), metrics(2048, calGap, min/3+1)
	s.Calibrated.MeanConfidence = ptr(*s.Raw.Accuracy + *s.Calibrated.MeanConfidence - *s.Calibrated.Accuracy)
	s.Calibrated.Accuracy = s.Raw.Accuracy
	return s
}

func decisions(h *history.History, m, v string) {
	alert := func(at time.Duration, slice, state string, ece, null float64) {
		h.AddAlert(record.Alert{
			Schema: 1, Model: m, Version: v, Slice: slice, Rule: "ece-calibrated", Severity: "critical", State: state,
			Since: stamp(22 * time.Minute), At: stamp(at), Value: ece - null, Threshold: .02, ECE: ece, ECENull: null,
			ECELo: ptr(ece - .01), ECEHi: ptr(ece + .01), Rows: 5043, Signal: "calibrated", Window: "last-5000",
		})
	}
	alert(22*time.Minute, "", "pending", .0342, .0121)
	alert(23*time.Minute, "", "firing", .0687, .0121)
	alert(30*time.Minute, "", "resolved", .0140, .0121)
	alert(57*time.Minute, "region=eu", "firing", .0512, .0301)
	refit := func(at time.Duration, rev int, published bool, reason, outcome string, ev record.Evidence) {
		h.AddCalibrator(record.Calibrator{
			Schema: 1, Model: m, Version: v, Revision: rev, Published: published, Reason: reason, Outcome: outcome,
			DecidedAt: stamp(at), EffectiveFrom: stamp(at), Calibrator: json.RawMessage(`{"method":"temperature"}`),
			Evidence: ev,
		})
	}
	kept := record.Evidence{FitRows: 3000, TestRows: 1200, NLLInForce: .3811, NLLNew: .3809, NLLDiff: -.0002,
		NLLDiffSE: .0006, ECEInForce: .012, ECENew: .0118, Temperature: 1.02}
	refit(10*time.Minute, 2, false, "period", "mean NLL is not significantly lower", kept)
	refit(25*time.Minute, 3, true, "alarm", "mean NLL is significantly lower, accuracy and ECE hold", record.Evidence{
		FitRows: 3000, TestRows: 1200, NLLInForce: .6122, NLLNew: .5401, NLLDiff: -.0721, NLLDiffSE: .0063,
		ECEInForce: .0687, ECENew: .0141, Temperature: 1.6187,
	})
	for i := range 3 {
		refit(time.Duration(35+10*i)*time.Minute, 3, false, "period",
			fmt.Sprintf("mean NLL is not significantly lower (attempt %d)", i+1), kept)
	}
}

// anytime adds to a history an alarm with evidence for the whole, what it inhibits in a slice and in a rule, and an
// alert that a calibrator answers.
func anytime(h *history.History) *history.History {
	const m, v = "digits-resnet20", "2024-03-01"
	at := 24 * time.Minute
	a := record.Alert{
		Schema:    1,
		Model:     m,
		Version:   v,
		Rule:      "calibration-calibrated",
		Kind:      "anytime",
		Measure:   "log_e",
		Severity:  "critical",
		State:     "firing",
		Since:     stamp(21 * time.Minute),
		At:        stamp(at),
		Value:     17.25,
		Threshold: 15.66,
		ECE:       .0712,
		Rows:      1800,
		Signal:    "calibrated",
		Message: "calibrated confidence is overconfident since about 2024-03-05T11:51:00Z: mean confidence 0.884, " +
			"accuracy 0.813, ECE 0.0712 on the 1800 labelled rows since. A model inside the tolerance (ECE 0.02, " +
			"each bin 0.05) shows this at most once in 9.8 years; mostly in (0.6, 0.667] by -0.124",
		Diagram: "/?at=2024-03-05T11%3A54%3A00Z&model=digits-resnet20&slice=&version=2024-03-01&window=last-5000",
		Evidence: &record.AlertEvidence{
			Tests:        []string{"ece", "bin"},
			EpsilonECE:   .02,
			EpsilonBin:   .05,
			LogE:         17.25,
			LogEBin:      16.5,
			Threshold:    15.66,
			ThresholdBin: 15.66,
			ByChance:     "at most once in 9.8 years",
			Direction:    "overconfident",
			Since:        stamp(21 * time.Minute),
			Bins: []record.EvidenceBin{{Lo: .6, Hi: .667, N: 412, Confidence: .64, Accuracy: .5163, Gap: -.1237,
				LogE: 9.5, Since: stamp(22 * time.Minute)}},
		},
	}
	a.MeanConfidence, a.Accuracy = ptr(.884), ptr(.813)
	h.AddAlert(a)
	root := m + "/" + v + "//" + a.Rule
	for i, s := range []struct{ slice, rule, by string }{{"region=us", "calibration-calibrated", root},
		{"", "worse-nll", root}, {"", "calibration-raw", "calibrator 3"}, {"region=eu", "lost-root", m + "/" + v +
			"//none"}} {
		b := a
		b.Slice, b.Rule, b.InhibitedBy, b.Evidence, b.At = s.slice, s.rule, s.by, nil,
			stamp(at+time.Duration(i)*time.Minute)
		h.AddAlert(b)
	}
	return h
}
