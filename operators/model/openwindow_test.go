package model

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/window"
)

// TestOpenWindowsWaitUntilTheyGrow has a window of a day over hundreds of panes: it is not published at each of them,
// what is published is never a fiftieth behind, the final one has every row, and restarts change nothing.
func TestOpenWindowsWaitUntilTheyGrow(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(71, batchtest.Options{N: 3000, Step: second, MaxLag: 10 * second, Sharpness: 2})
	s := defaultSetup()
	day := window.Config{Name: "day", Kind: "time", Size: 24 * time.Hour}
	s.model.Windows = []window.Config{day}
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 16), 1).run(worldtest.AnyOrder)
	panes, shown, most := map[int64]bool{}, 0, int64(0)
	for _, r := range rows {
		panes[r.TS/s.model.Pane] = true
	}
	for _, snapshot := range w.Snapshots() {
		if snapshot.Slice != "" {
			continue
		}
		shown++
		most = max(most, snapshot.Labelled)
		if snapshot.Window.Final && snapshot.Labelled != int64(len(rows)) {
			t.Errorf("the final window has %d rows, want %d", snapshot.Labelled, len(rows))
		}
	}
	t.Logf("%d snapshots of %d panes", shown, len(panes))
	if shown < 50 || shown > len(panes)*3/4 || most < int64(len(rows))*98/100 {
		t.Errorf("%d snapshots of %d panes, the last with %d of %d rows", shown, len(panes), most, len(rows))
	}
	w.compareRestarts(t, w.restartsAfter(3))
}
