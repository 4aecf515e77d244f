package engine

import (
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/pipeline"
)

// TestAlertsAreRemindedOfOnce: an attempt whose checkpoint was not written leaves the alerts to the next one; one whose
// checkpoint was does not, until the group changes.
func TestAlertsAreRemindedOfOnce(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	rt := New(config.Default(), log)
	h := &host{Deployment: deployment.New(&rt.Config, log), process: rt.process}
	stage := newModelStage(h, &rt.builder, rt.view)
	var generation atomic.Bool
	attempt := func(written bool) (fired bool) {
		task := stage.register(rt.NewModelTask(0, pipeline.NewCounts()), 0, &generation).Task.(inTurn)
		task.report(true, true)() // what there is to read has been read
		if err := task.Resume(); err != nil {
			t.Fatal(err)
		}
		if show := task.report(true, true); written {
			show()
		}
		return task.remind.fired
	}
	for n, c := range []struct{ written, fires bool }{{false, true}, {false, true}, {true, true}, {true, false}} {
		if got := attempt(c.written); got != c.fires {
			t.Errorf("attempt %d: alerts published again: %v, want %v", n+1, got, c.fires)
		}
	}
	if generation.Store(false); !attempt(true) {
		t.Error("after a change of the group alerts were not published again")
	}
}
