package engine

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestModelOfAnotherProcess: when the group gives a model's task to another process, its alarm and its numbers are no
// longer those of this one, whose page says so. While the group assigns anew, and while the task restores, they stay as
// they were.
func TestModelOfAnotherProcess(t *testing.T) {
	const panes = 2
	var models [panes]string
	for i := 0; models[0] == "" || models[1] == ""; i++ {
		m := fmt.Sprint("model", i)
		models[murmur.PartitionOf([]byte(m), panes)] = m
	}
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	g := kafkaio.Group{}
	rt.due.follow(&g, stageModels, panes)
	rt.shareModels(&g, panes)
	remembered := func(p int) { // as recall does
		at := record.At(time.Date(2024, 3, 5, 12, 0, 0, 0, time.UTC).UnixNano())
		rt.Show(&record.Snapshot{Schema: 1, Model: models[p], Version: "1", At: at, Labelled: 9,
			Window: record.Window{Name: "rows", Kind: "rows", End: at}})
		rt.Show(&record.Alert{Schema: 1, Model: models[p], Version: "1", Rule: "ece", State: "firing", Since: at,
			At: at})
		rt.History.Return(p)
	}
	page := rt.pages(true)
	ask := func(path string) string {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Body.String()
	}
	shows := func(when string, want ...bool) {
		t.Helper()
		for p, m := range models {
			for path, texts := range map[string][2]string{ // of a model that is served here, of one that is not
				"/metrics":                   {`plumbline_alert_state{model="` + m + `"`, ""},
				"/metrics?":                  {`plumbline_window_labelled_rows{model="` + m + `"`, ""},
				"/api/v1/alerts?model=" + m:  {`"current":[{`, `"current":[]`},
				"/api/v1/models?search=" + m: {`"alerts_firing":1`, `"moved":true`},
			} {
				body := ask(path)
				if has := strings.Contains(body, texts[0]); has != want[p] {
					t.Errorf("%s: %s has %s: %v", when, path, texts[0], has)
				}
				if other := texts[1]; other != "" && strings.Contains(body, other) == want[p] {
					t.Errorf("%s: %s has %s: %v", when, path, other, want[p])
				}
			}
		}
	}
	g.Has([]int{0, 1}, true)
	remembered(0)
	remembered(1)
	shows("both tasks are here", true, true)
	g.Has(nil, false)
	shows("the group assigns anew", true, true)
	g.Has([]int{1}, true)
	shows("task 0 is elsewhere", false, true)
	remembered(1)
	shows("task 1 has restored", false, true)
	g.Has(nil, false)
	g.Has([]int{0, 1}, true)
	shows("task 0 restores", false, true)
	remembered(0)
	shows("both are here again", true, true)
}
