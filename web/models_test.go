package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// TestModelsAreListed: every version in the state is listed or counted; where they are more than the limit, the one
// that is asked for, those that have an alarm and the one that has most labels are among them, and all can be searched
// by name.
func TestModelsAreListed(t *testing.T) {
	h := history.New(history.Config{})
	at := record.At(1e18)
	h.AddSnapshot(record.Snapshot{Model: "good", Version: "7", At: at, Labelled: 1000,
		Window: record.Window{Name: "rows", Kind: "rows", End: at}})
	var known []record.VersionStatus
	for i := range 10_412 {
		known = append(known, record.VersionStatus{Model: fmt.Sprintf("a%05d", i), Version: "1", Classes: 10})
	}
	known = append(known, record.VersionStatus{Model: "good", Version: "7", Classes: 5, Settled: true,
		Others: map[int]int64{10: 3}})
	handler := New(Deps{History: h, Versions: func() []record.VersionStatus { return known }})
	type answer struct {
		Models                 []modelInfo
		Total, Matching, Shown int
	}
	ask := func(query string) (a answer) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/models"+query, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		return a
	}
	h.AddAlert(record.Alert{Model: "a10400", Version: "1", Rule: "r", State: "firing", At: at})
	h.AddAlert(record.Alert{Model: "a10401", Version: "1", Rule: "r", State: "firing", At: at, InhibitedBy: "x"})
	if a := ask("?limit=1"); a.Shown != 1 || a.Models[0].Model != "a10400" || a.Models[0].Versions[0].Firing != 1 {
		t.Errorf("a model that has an alarm: %+v", a)
	}
	all := ask("")
	if all.Total != 10_413 || all.Matching != 10_413 || all.Shown != 500 || len(all.Models) != 500 {
		t.Errorf("total %d, matching %d, shown %d", all.Total, all.Matching, all.Shown)
	}
	last := all.Models[499]
	if v := last.Versions[0]; last.Model != "good" || v.Classes != 5 || !v.Settled || v.Others[10] != 3 ||
		len(v.Slices) != 1 {
		t.Errorf("the version with most labels is not there, or not as in the state: %+v", last)
	}
	if a := ask("?search=0041&limit=3"); a.Matching != 12 || a.Shown != 3 || a.Models[0].Model != "a00041" {
		t.Errorf("search: %+v", a)
	}
	if a := ask("?model=a09999&limit=1"); a.Shown != 1 || a.Models[0].Model != "a09999" {
		t.Errorf("a model that is asked for: %+v", a)
	}
}
