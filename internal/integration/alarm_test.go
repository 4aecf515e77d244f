//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestAlarm is the stream of TestDrift with the alarm as it is by default: it finds the clean net wrong from the first
// rows on, is answered by a calibrator, finds the change, and takes no longer than a rule would.
func TestAlarm(t *testing.T) {
	t.Parallel()
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	s := configure(t, strings.Replace(driftCommon, "alarm: {enabled: false}\n", "",
		1)+strings.TrimPrefix(driftSetups[0].yaml, "\n"))
	p := run(t, s)
	runOK(t, "produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1", "--shuffle",
		"--event-rate", "20",
		"--start", start.Format(time.RFC3339), "--label-delay", "0s-10s", file+":resnet20",
		file+":resnet20_gauss_noise_s1")
	p.drain(driftTotal, driftTotal)
	p.stop()
	change := start.Add(driftBefore / driftRate * time.Second)
	var wrong, answered, found, rule time.Time
	for _, a := range records[record.Alert](t, s.topic("alerts")) {
		at := a.At.Std()
		switch {
		case a.Rule == "ece" && a.State == "firing" && rule.IsZero():
			rule = at
		case a.Rule != "calibration-calibrated":
		case a.State == "firing" && at.Before(change) && wrong.IsZero():
			wrong = at
			if a.Evidence == nil || !strings.Contains(a.Message, "overconfident") {
				t.Errorf("the clean net is overconfident; the alarm says %q with evidence %+v", a.Message, a.Evidence)
			}
		case a.State == "resolved" && !wrong.IsZero() && at.Before(change):
			answered = at
		case a.State == "firing" && at.After(change) && found.IsZero():
			found = at
			if since := a.Since.Std(); since.Before(change.Add(-30*time.Second)) || since.After(at) {
				t.Errorf("the change was at %v, the estimate of when it began is %v", change, since)
			}
		}
	}
	if wrong.IsZero() || wrong.After(start.Add(2*time.Minute)) {
		t.Errorf("stably wrong: found at %v, want within 2 minutes of %v", wrong, start)
	}
	if answered.IsZero() {
		t.Error("the alarm did not resolve before the change")
	}
	if found.IsZero() || rule.IsZero() || found.After(rule) {
		t.Errorf("the change at %v: the alarm at %v, the rule at %v; want both, the alarm no later", change, found,
			rule)
	}
	first := time.Time{}
	for _, c := range records[record.Calibrator](t, s.topic("calibrators")) {
		if from := c.EffectiveFrom.Std(); c.Published && (first.IsZero() || from.Before(first)) {
			first = from
		}
	}
	if first.IsZero() || !first.Before(answered) || first.Before(wrong) {
		t.Errorf("first calibrator in force from %v, want between the alarm at %v and its end at %v", first, wrong,
			answered)
	}
}
