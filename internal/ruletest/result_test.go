package main

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestExpectationsOfEvidence: what is expected of state, inhibitor and bins is compared with what the alert says.
func TestExpectationsOfEvidence(t *testing.T) {
	t.Parallel()
	a := &ruleAlert{Rule: "r", State: "firing", InhibitedBy: "m/1//calibration-raw", Direction: "overconfident",
		Bins: []record.EvidenceBin{{Lo: .8, Hi: .8667, Gap: -.1}, {Lo: .8667, Hi: .9333, Gap: -.2}}}
	yes, no := true, false
	for _, c := range []struct {
		e    ruleExpectation
		want bool
	}{
		{ruleExpectation{State: "firing"}, true},
		{ruleExpectation{State: "inhibited"}, true},
		{ruleExpectation{State: "pending"}, false},
		{ruleExpectation{State: "firing", Inhibited: &no}, false},
		{ruleExpectation{State: "firing", Inhibited: &yes, InhibitedBy: "calibration-raw"}, true},
		{ruleExpectation{State: "firing", InhibitedBy: "m/1//calibration-raw"}, true},
		{ruleExpectation{State: "firing", InhibitedBy: "raw"}, false},
		{ruleExpectation{State: "firing", Direction: "underconfident"}, false},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, 1, "below"}}, OnlyBins: true}, true},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, .87, ""}}}, true},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, .87, ""}}, OnlyBins: true}, false},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, 1, "above"}}}, false},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.2, .4, ""}}}, false},
	} {
		if c.e.Rule = "r"; c.e.matches(a) != c.want {
			t.Errorf("%v: matches %v: %v, want %v", &c.e, a, !c.want, c.want)
		}
	}
}
