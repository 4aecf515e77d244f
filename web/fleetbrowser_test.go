//go:build integration

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// fires adds a snapshot of a version, and an alarm on it.
func fires(h *history.History, model, version string, at time.Duration) {
	h.AddSnapshot(snapshotAt(model, version, "", at))
	h.AddAlert(record.Alert{Schema: 1, Model: model, Version: version, Rule: "ece-raw", State: "firing", Signal: "raw",
		Since: stamp(at), At: stamp(at)})
}

// textOf is an expression for the text of an element.
func textOf(selector string) string {
	return fmt.Sprintf("document.querySelector(%q).textContent", selector)
}

// option is an expression for the label of a choice.
func option(name, value string) string {
	return fmt.Sprintf(`[...document.querySelector("[name=%s]").options].find((o) => o.value === %q).textContent`, name,
		value)
}

// TestOpensOnAnAlarmInBrowser: a page whose address names no model shows one that has an alarm, in the version that has
// it. A page of another one tells of it, also of one that comes later, in the list and beside it.
func TestOpensOnAnAlarmInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("anna", "1", "", time.Hour))
	fires(h, "bert", "1", time.Hour)
	h.AddSnapshot(snapshotAt("bert", "2", "", 2*time.Hour))
	srv := httptest.NewServer(testHandler(h))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	page := newTab(ctx, t, 1200, 900)
	page.call("Page.navigate", map[string]any{"url": srv.URL})
	page.await(ctx, `location.search.startsWith("?model=bert&version=1&")`)
	page.await(ctx, textOf("#verdict strong")+` === "▲ ece-raw is firing"`)
	page.await(ctx, option("model", "bert")+` === "bert ▲ alarm"`)
	page.await(ctx, option("version", "1")+` === "1 ▲ alarm"`)
	page.await(ctx, `document.querySelector("#others").hidden`)

	page.call("Page.navigate", map[string]any{"url": srv.URL + "/?model=anna"})
	page.await(ctx, `location.search.startsWith("?model=anna&version=1&")`)
	page.await(ctx, textOf("#verdict strong")+` === "● No alarm"`)
	page.await(ctx, textOf("#others")+` === "▲ Alarm in another model or version: bert 1."`)
	for i := range 4 {
		fires(h, fmt.Sprint("carl", i), "1", time.Hour)
	}
	page.await(ctx, textOf("#others")+
		` === "▲ Alarm in another model or version: bert 1, carl0 1, carl1 1 and 2 more."`)
	page.await(ctx, option("model", "carl3")+` === "carl3 ▲ alarm"`)
	page.await(ctx, `document.querySelector("#others a").click() === undefined`)
	page.await(ctx, textOf("#verdict strong")+` === "▲ ece-raw is firing"`)
}

// TestMovedModelInBrowser: when another process gets the model that is shown, the page says so and has no alarm; when
// the model is back, it has what the task remembers.
func TestMovedModelInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.Share(func(string) int { return 0 })
	fires(h, "bert", "1", time.Hour)
	srv := httptest.NewServer(testHandler(h))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	page := newTab(ctx, t, 1200, 900)
	page.call("Page.navigate", map[string]any{"url": srv.URL})
	page.await(ctx, textOf("#verdict strong")+` === "▲ ece-raw is firing"`)
	page.await(ctx, textOf("#conn")+` === "live"`)
	h.Leave(0)
	page.await(ctx, textOf("#verdict strong")+` === "Another process serves this model now"`)
	page.await(ctx, textOf("#conn")+` === "served by another process"`)
	page.await(ctx, textOf("#tiles .tile")+` === "Alarm–in another process"`)
	page.await(ctx, option("model", "bert")+` === "bert (elsewhere)"`)
	page.await(ctx, `!document.title.includes("▲")`)
	fires(h, "bert", "1", time.Hour)
	h.Return(0)
	page.await(ctx, textOf("#verdict strong")+` === "▲ ece-raw is firing"`)
	page.await(ctx, textOf("#conn")+` === "live"`)
}

// TestOneCauseInBrowser: what follows from one alarm in many slices is one line, with their number and the worst.
func TestOneCauseInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	fires(h, "bert", "1", time.Hour)
	for i := range 40 {
		h.AddAlert(record.Alert{Schema: 1, Model: "bert", Version: "1", Slice: fmt.Sprintf("tenant=%02d", i),
			Rule: "ece-raw", State: "firing", Signal: "raw", Since: stamp(time.Hour), At: stamp(time.Hour),
			ECE: float64(i%38) / 100, InhibitedBy: "bert/1//ece-raw"})
	}
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	root := item(t, chromium(t, srv.URL, "--dump-dom"), "Alarm: ece-raw")
	_, under, _ := strings.Cut(root, `class="under"`)
	if n := strings.Count(under, "<li>"); n != 1 {
		t.Errorf("%d lines, want one: %s", n, under)
	}
	for _, want := range []string{"ece-raw is over its limit in 40 slices: ", ">tenant=37</a>, ", ">tenant=36</a>, ",
		">tenant=35</a> and 37 more since ", "It is part of this alarm and raises none itself."} {
		if !strings.Contains(under, want) {
			t.Errorf("lacks %q: %s", want, under)
		}
	}
}

// TestNothingIsAskedInVainInBrowser: a page of a process without heads and without a database does not ask for them;
// and it says why a window of rows has no label coverage.
func TestNothingIsAskedInVainInBrowser(t *testing.T) {
	all := still(synthetic())
	vain := make(chan string, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		all.ServeHTTP(rec, r)
		if rec.Code >= 400 {
			vain <- fmt.Sprint(r.URL.Path, " ", rec.Code)
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	defer srv.Close()
	rows := chromium(t, srv.URL, "--dump-dom")
	if len(vain) > 0 {
		t.Errorf("the page asks for %s", <-vain)
	}
	if !strings.Contains(rows, `<dd class="sub">labelled rows only</dd><dd class="sub">see window 5m</dd>`) {
		t.Error("a window of rows does not say why it has no label coverage")
	}
	if timed := chromium(t, srv.URL+"/?window=5m", "--dump-dom"); strings.Contains(timed, "labelled rows only") {
		t.Error("a window of time denies its label coverage")
	}
}
