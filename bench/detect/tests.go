package main

import "github.com/plumbline/plumbline/calib/detect"

// changeEpsilon is the tolerance of the change mode: small, for the reference has a slack of its own.
const changeEpsilon = .0075

// tests are what is measured.
var tests = []test{
	{name: "headline", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, pane: 100},
	{name: "diagnosis", spec: detect.Spec{Null: detect.NullBin, Epsilon: .05}, pane: 100},
	{name: "bins .02", spec: detect.Spec{Null: detect.NullBin, Epsilon: .02}, pane: 100},
	{name: "change", spec: detect.Spec{Null: detect.NullBin, Epsilon: changeEpsilon}, pane: 100, learn: changeAt},
	{name: "accuracy", spec: detect.Spec{Null: detect.NullAccuracy, Epsilon: .02}, pane: 100, learn: changeAt},
	{name: "headline, panes of 20", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, pane: 20, compared: true},
	{name: "diagnosis, panes of 20", spec: detect.Spec{Null: detect.NullBin, Epsilon: .05}, pane: 20, compared: true},
	{name: "change, panes of 20", spec: detect.Spec{Null: detect.NullBin, Epsilon: changeEpsilon}, pane: 20,
		learn: changeAt},
	{name: "accuracy, panes of 20", spec: detect.Spec{Null: detect.NullAccuracy, Epsilon: .02}, pane: 20,
		learn: changeAt, compared: true},
}

// shareTest is a test that has one part in so many of an α.
type shareTest struct {
	name string
	of   float64
}

// joint are tests that share an α. The stream's alarm is the first one on each of its signals; with "accuracy" among
// them, all signals have equal parts of α.
var joint = map[string][]shareTest{
	"alarm":            {{"headline", 2}, {"diagnosis", 2}},
	"alarm + accuracy": {{"headline", 4}, {"diagnosis", 4}, {"accuracy", 2}},
	"alarm + accuracy" + shortPanes: {{"headline" + shortPanes, 4}, {"diagnosis" + shortPanes, 4},
		{"accuracy" + shortPanes, 2}},
}

const shortPanes = ", panes of 20"

// shortRuns is how many runs tests with short panes have, which take five times as long: those that are compared have
// all where nobody may alarm.
const shortRuns = 200

// wanted says whether the test has the runs from that one on.
func (t test) wanted(group string, from int) bool {
	if t.pane == 100 {
		return true
	}
	return group != groupWhere && (from < shortRuns || t.compared && group == groupCalm)
}

// synthetic returns the streams that are drawn here.
func synthetic(s *scores, n int) []stream {
	var out []stream
	for _, group := range [][]stream{calm(s, n), delays(s), where(s), stable(s), lates(s, n)} {
		out = append(out, group...)
	}
	return out
}
