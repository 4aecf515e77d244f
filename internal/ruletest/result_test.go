package ruletest

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestExpectationsOfEvidence: what is expected of state, inhibitor and bins is compared with what the alert says.
func TestExpectationsOfEvidence(t *testing.T) {
	t.Parallel()
	a := &Alert{Rule: "r", State: "firing", InhibitedBy: "m/1//calibration-raw", Direction: "overconfident",
		Bins: []record.EvidenceBin{{Lo: .8, Hi: .8667, Gap: -.1}, {Lo: .8667, Hi: .9333, Gap: -.2}}}
	yes, no := true, false
	for _, c := range []struct {
		e    Expectation
		want bool
	}{
		{Expectation{State: "firing"}, true},
		{Expectation{State: "inhibited"}, true},
		{Expectation{State: "pending"}, false},
		{Expectation{State: "firing", Inhibited: &no}, false},
		{Expectation{State: "firing", Inhibited: &yes, InhibitedBy: "calibration-raw"}, true},
		{Expectation{State: "firing", InhibitedBy: "m/1//calibration-raw"}, true},
		{Expectation{State: "firing", InhibitedBy: "raw"}, false},
		{Expectation{State: "firing", Direction: "underconfident"}, false},
		{Expectation{State: "firing", Bins: []expectedBins{{.8, 1, "below"}}, OnlyBins: true}, true},
		{Expectation{State: "firing", Bins: []expectedBins{{.8, .87, ""}}}, true},
		{Expectation{State: "firing", Bins: []expectedBins{{.8, .87, ""}}, OnlyBins: true}, false},
		{Expectation{State: "firing", Bins: []expectedBins{{.8, 1, "above"}}}, false},
		{Expectation{State: "firing", Bins: []expectedBins{{.2, .4, ""}}}, false},
	} {
		if c.e.Rule = "r"; c.e.matches(a) != c.want {
			t.Errorf("%v: matches %v: %v, want %v", &c.e, a, !c.want, c.want)
		}
	}
}
