package record_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestResult: records of builds that knew no State are read by their other fields.
func TestResult(t *testing.T) {
	two := 2
	for _, c := range []struct {
		record record.Calibrator
		want   string
	}{
		{record.Calibrator{Outcome: "no change: nothing better", Stage: record.StageShadow}, "no_change"},
		{record.Calibrator{Outcome: "published: vector, NLL 1 → 2", Published: true, Stage: record.StageFull},
			"published"},
		{record.Calibrator{Outcome: "published: rollback to revision 2", Published: true, Restores: &two},
			"rolled_back"},
		{record.Calibrator{Outcome: "canary: vector for 0.1 of the ids", Stage: record.StageCanary, Share: .1},
			"canary"},
		{record.Calibrator{Outcome: "canary ended: worse", Stage: record.StageCanary}, "canary_ended"},
		{record.Calibrator{Outcome: "pin by ann", Published: true, Pinned: true}, "pinned"},
		{record.Calibrator{Outcome: "pin by ann", Pinned: true}, "pinned"},
		{record.Calibrator{Outcome: "unpin by ann"}, "unpinned"},
		{record.Calibrator{Outcome: "refused: pin by ann: no such version"}, "refused"},
		{record.Calibrator{Outcome: "published: publish by ann", Published: true}, "published"},
		{record.Calibrator{Outcome: "classes: K = 10 by ann", Classes: 10}, "classes"},
		{record.Calibrator{Outcome: "published: pin by ann", Published: true, Restores: &two,
			State: record.DecidedPinned}, "pinned"},
		{record.Calibrator{Outcome: "published: pin by ann", Published: true, Restores: &two}, "pinned"},
	} {
		if got := c.record.Result(); got != c.want {
			t.Errorf("%s: %s, want %s", c.record.Outcome, got, c.want)
		}
	}
}
