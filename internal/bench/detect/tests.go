package main

import "github.com/plumbline/plumbline/calib/detect"

// changeEpsilon is the tolerance of the change mode: small, for the reference has a slack of its own.
const changeEpsilon = .0075

// tests are what is measured. The alarm is the first two together, each at half of α; the one compared with others is bins .02 and
// accuracy, both with panes of 20, each at half of α.
var tests = []test{
	{name: "headline", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, pane: 100},
	{name: "diagnosis", spec: detect.Spec{Null: detect.NullBin, Epsilon: .05}, pane: 100},
	{name: "bins .02", spec: detect.Spec{Null: detect.NullBin, Epsilon: .02}, pane: 100},
	{name: "change", spec: detect.Spec{Null: detect.NullBin, Epsilon: changeEpsilon}, pane: 100, learn: changeAt},
	{name: "accuracy", spec: detect.Spec{Null: detect.NullAccuracy, Epsilon: .02}, pane: 100, learn: changeAt},
	{name: "bins .02, panes of 20", spec: detect.Spec{Null: detect.NullBin, Epsilon: .02}, pane: 20, compared: true},
	{name: "change, panes of 20", spec: detect.Spec{Null: detect.NullBin, Epsilon: changeEpsilon}, pane: 20, learn: changeAt},
	{name: "accuracy, panes of 20", spec: detect.Spec{Null: detect.NullAccuracy, Epsilon: .02}, pane: 20, learn: changeAt, compared: true},
}

// joint are pairs of tests that share an α.
var joint = map[string][2]string{
	"alarm":           {"headline", "diagnosis"},
	"bins + accuracy": {"bins .02, panes of 20", "accuracy, panes of 20"},
}

// shortRuns is how many runs tests with short panes have, which take five times as long: those that are compared have all where
// nobody may alarm.
const shortRuns = 200

// wanted says whether the test has the runs from that one on.
func (t test) wanted(group string, from int) bool {
	return t.pane == 100 || from < shortRuns || t.compared && group == groupCalm
}

// synthetic returns the streams that are drawn here.
func synthetic(s *scores, n int) []stream {
	var out []stream
	for _, group := range [][]stream{calm(s, n), delays(s), stable(s), lates(s, n)} {
		out = append(out, group...)
	}
	return out
}
