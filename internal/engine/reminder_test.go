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
	var generation atomic.Int64
	attempt := func(written bool) (fired bool) {
		task := stage.register(rt.NewModelTask(0, pipeline.NewCounts()), 0, &generation).Task.(inTurn)
		task.report(true, true)() // what there is to read has been read
		if err := task.Resume(); err != nil {
			t.Fatal(err)
		}
		if show := task.report(true, true); written {
			show()
		}
		return task.remind.fired > 0
	}
	for n, c := range []struct{ written, fires bool }{{false, true}, {false, true}, {true, true}, {true, false}} {
		if got := attempt(c.written); got != c.fires {
			t.Errorf("attempt %d: alerts published again: %v, want %v", n+1, got, c.fires)
		}
	}
	if generation.Store(0); !attempt(true) {
		t.Error("after a change of the group alerts were not published again")
	}
	// The topic is made again while no attempt is there.
	rt.view.alerts.anew.Add(1)
	for n, want := range []bool{true, false} {
		if got := attempt(true); got != want {
			t.Errorf("attempt %d after the topic was made again: %v, want %v", n+1, got, want)
		}
	}
}
