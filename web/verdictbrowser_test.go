//go:build integration

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

const link = "/?model=digits-resnet20&version=2024-03-01&window=last-5000&slice="

// verdictOf is the sentence of the page, as text.
func verdictOf(t *testing.T, dom string) string {
	t.Helper()
	_, v, ok := strings.Cut(dom, `id="verdict" class="verdict" `)
	if !ok {
		t.Fatalf("no verdict: %s", dom)
	}
	v, _, _ = strings.Cut(v, "</p>")
	return strings.NewReplacer("<strong>", "", "</strong>", "", "\u202f", " ").Replace(v)
}

// TestVerdictInBrowser: one sentence says what is wrong, since when and by how much, or that nothing is.
func TestVerdictInBrowser(t *testing.T) {
	h := anytime(synthetic())
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	f := func(query string, want ...string) {
		t.Helper()
		v := verdictOf(t, chromium(t, srv.URL+link+query, "--dump-dom"))
		for _, w := range want {
			if !strings.Contains(v, w) {
				t.Errorf("%q: the verdict lacks %q: %s", query, w, v)
			}
		}
	}
	f("&at=2024-03-05T11:40:00Z", `data-state="ok"`, "No alarm", "a calibrated model would show 0.8 %", "of 5 043 rows")
	f("&at=2024-03-05T11:54:00Z", `data-state="firing"`, "▲ calibration-calibrated is firing",
		"is overconfident since about 11:51:00: 88.4 % sure, 81.3 % right in the 1 800 rows until 11:54:00. "+
			"This window: ECE ", ", if calibrated 1.2 %.")
	f("region%3Dus", `data-state="elsewhere"`, "▲ Alarm in all rows and 1 slice, worst: ", ">all rows</a>",
		"region=us: calibration-calibrated is over its limit, as part of another alarm",
		"It follows from calibration-calibrated of all rows.", "Also: ", ">region=eu</a>.")
}

// TestVerdictOfFewRowsInBrowser: no alarm of few rows is not taken for a model that is right.
func TestVerdictOfFewRowsInBrowser(t *testing.T) {
	for null, want := range map[float64]bool{.2: true, .01: false} {
		h := history.New(history.Config{})
		s := snapshotAt("m", "1", "", time.Hour)
		s.Raw.ECENull = ptr(null)
		h.AddSnapshot(s)
		srv := httptest.NewServer(still(h))
		v := verdictOf(t, chromium(t, srv.URL+"/?model=m&version=1&window=last-5000", "--dump-dom"))
		srv.Close()
		if strings.Contains(v, "So few rows show no smaller error.") != want || !strings.Contains(v, "No alarm") {
			t.Errorf("%v: %s", null, v)
		}
	}
}

// TestVerdictOfAlertInBrowser: the figures of an alarm are those of its own rows. A record of an older build has none:
// there they are the window's, whatever its message says.
func TestVerdictOfAlertInBrowser(t *testing.T) {
	own := record.Alert{Schema: 1, Model: "m", Version: "1", Rule: "calibration-raw", Kind: "anytime", Measure: "log_e",
		State: "firing", Signal: "raw", Since: stamp(0), At: stamp(time.Minute), Rows: 1800, ECE: .07,
		Message:  "raw confidence is off: mean confidence 0.111, accuracy 0.222, ECE 0.07 on the 1800 labelled rows",
		Evidence: &record.AlertEvidence{Direction: "overconfident"}, MeanConfidence: ptr(.884), Accuracy: ptr(.813)}
	old := own
	old.MeanConfidence, old.Accuracy = nil, nil
	fell := own
	fell.Rule, fell.Evidence = "accuracy-fall", &record.AlertEvidence{ReferenceAccuracy: ptr(.9)}
	s := snapshotAt("m", "1", "", time.Hour)
	percent := func(v *float64) string { return fmt.Sprintf("%.1f %%", 100**v) }
	for _, c := range []struct {
		alert record.Alert
		want  string
	}{
		{own, "is overconfident since about 11:30:00: 88.4 % sure, 81.3 % right in the 1 800 rows until 11:31:00. "},
		{old, "is overconfident since about 11:30:00: " + percent(s.Raw.MeanConfidence) + " sure, " +
			percent(s.Raw.Accuracy) + " right. ECE "},
		{fell, "Accuracy is down since about 11:30:00: 81.3 % in the 1 800 rows until 11:31:00, it was 90.0 %. ECE "},
	} {
		h := history.New(history.Config{})
		h.AddSnapshot(s)
		h.AddAlert(c.alert)
		srv := httptest.NewServer(still(h))
		v := verdictOf(t, chromium(t, srv.URL, "--dump-dom"))
		srv.Close()
		if !strings.Contains(v, c.want) {
			t.Errorf("want %q: %s", c.want, v)
		}
	}
}

// TestVerdictOfRulesInBrowser: a rule that is not about confidence is told in its own words, never as overconfidence.
func TestVerdictOfRulesInBrowser(t *testing.T) {
	for kind, measure := range map[string]string{"threshold": "coverage", "distance": "ks", "estimate": "ece",
		"reference": "nll", "excess": "ece"} {
		h := history.New(history.Config{})
		h.AddSnapshot(snapshotAt("m", "1", "", time.Hour))
		h.AddAlert(record.Alert{Schema: 1, Model: "m", Version: "1", Rule: "r", Kind: kind, Measure: measure,
			State: "firing", Signal: "raw", Since: stamp(0), At: stamp(time.Minute), Message: measure + " is 0.1"})
		srv := httptest.NewServer(still(h))
		v := verdictOf(t, chromium(t, srv.URL, "--dump-dom"))
		srv.Close()
		want, not := strings.ToUpper(measure[:1])+measure[1:]+" is 0.1. Since 11:30:00. ECE ", "confident"
		if kind == "excess" {
			want, not = "The model is ", want
		}
		if !strings.Contains(v, "▲ r is firing") || !strings.Contains(v, want) || strings.Contains(v, not) {
			t.Errorf("%s of %s: want %q: %s", kind, measure, want, v)
		}
	}
}

// TestAnsweredInBrowser: an alarm that a calibrator answers is no alarm, and an accuracy that stays down is told beside
// it.
func TestAnsweredInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	s := snapshotAt("m", "1", "", time.Hour)
	h.AddSnapshot(s)
	a := record.Alert{Schema: 1, Model: "m", Version: "1", Rule: "calibration-raw", Kind: "anytime", State: "firing",
		Signal: "raw", Since: stamp(0), At: stamp(time.Minute), InhibitedBy: "calibrator 3"}
	h.AddAlert(a)
	a.Rule, a.InhibitedBy = "accuracy-fall", "m/1//calibration-calibrated"
	h.AddAlert(a)
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	v := verdictOf(t, dom)
	for _, want := range []string{`data-state="answered"`, "calibration-raw is answered by calibrator 3",
		"Accuracy stays down: "} {
		if !strings.Contains(v, want) {
			t.Errorf("the verdict lacks %q: %s", want, v)
		}
	}
	if !strings.Contains(dom, ">answered<") {
		t.Error("the tile does not say that the alarm is answered")
	}
}

// TestNoPredictionsInBrowser: the alarm of a version that nobody asks any more is no alarm, and the page says why.
func TestNoPredictionsInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("m", "1", "", time.Hour))
	h.AddAlert(record.Alert{Schema: 1, Model: "m", Version: "1", Rule: "calibration-raw", Kind: "anytime",
		State: "firing", Signal: "raw", Since: stamp(0), At: stamp(time.Minute),
		InhibitedBy: record.NoPredictions + stamp(0).String()})
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	v := verdictOf(t, dom)
	for _, want := range []string{`data-state="inhibited"`, "calibration-raw: nothing to judge",
		"No predictions since 11:30:00. The alarm was firing then, and goes on when predictions come."} {
		if !strings.Contains(v, want) {
			t.Errorf("the verdict lacks %q: %s", want, v)
		}
	}
	item(t, dom, "No predictions: calibration-raw")
	if strings.Contains(dom, "follows no predictions") || strings.Contains(dom, "Part of another alarm") {
		t.Error("the page says that the alarm follows from another")
	}
}

// TestManySlicesInBrowser: with 200 slices those that fire are marked in the selector and named, the first of them and
// how many more.
func TestManySlicesInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("m", "1", "", time.Hour))
	for i := range 200 {
		slice := fmt.Sprintf("merchant=%03d", i)
		h.AddSnapshot(snapshotAt("m", "1", slice, time.Hour))
		if i%40 == 7 {
			h.AddAlert(record.Alert{Schema: 1, Model: "m", Version: "1", Slice: slice, Rule: "calibration-raw",
				State: "firing", Signal: "raw", Since: stamp(0), At: stamp(time.Hour), ECE: .1,
				ECENull: .05, ECELo: ptr(.06 + float64(i/160))})
		}
	}
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	link := func(name string) string {
		return `<a href="?model=m&amp;version=1&amp;slice=merchant%3D` + name +
			`&amp;window=last-5000">merchant=` + name + `</a>`
	}
	v := verdictOf(t, dom)
	for _, want := range []string{`data-state="elsewhere"`, "▲ Alarm in 5 slices, worst: " + link("167"),
		"All rows: no alarm. ECE ", " Also: " + link("007") + ", " + link("047") + ", " + link("087") +
			" and 1 more."} {
		if !strings.Contains(v, want) {
			t.Errorf("got %s, want %s", v, want)
		}
	}
	if strings.Contains(v, "No alarm") {
		t.Errorf("the headline denies the alarms: %s", v)
	}
	for _, want := range []string{">merchant=047 ▲ alarm</option>", ">1 ▲ alarm</option>",
		">merchant=046</option>", ">merchant=199</option>",
		`class="chip" href="?model=m&amp;version=1&amp;slice=merchant%3D047&amp;window=last-5000"`} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestLikeWithLikeInBrowser: accuracy stands beside the confidence of the same signal, a first answer does not claim
// newer rows nor an error that was not computed, and an alert on the class-wise ECE is told as one.
func TestLikeWithLikeInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	s := snapshotAt("m", "1", "", time.Hour)
	s.Raw.Accuracy, s.Raw.MeanConfidence, s.Raw.CWECE = ptr(.735), ptr(.742), ptr(.0131)
	s.Calibrated.Accuracy, s.Calibrated.MeanConfidence, s.Calibrated.CWECE = ptr(.842), ptr(.84), ptr(.0042)
	h.AddSnapshot(s)
	h.AddAlert(record.Alert{Schema: 1, Model: "m", Version: "1", Rule: "classes", Kind: "threshold", Measure: "cwece",
		State: "firing", Signal: "raw", Since: stamp(0), At: stamp(time.Hour), Message: "raw class-wise ECE (cwece)"})
	quick := record.Calibrator{Schema: 1, Model: "m", Version: "1", Revision: 3, Published: true, Reason: "quick",
		DecidedAt: stamp(time.Minute), EffectiveFrom: stamp(time.Minute), Outcome: "published: temperature 1.2 of " +
			"900 rows, NLL 0.04700 → 0.04600, ECE 0.0100 → 0.0080 on the 8192 since about 2024-03-05T11:20:00Z",
		Evidence: record.Evidence{FitRows: 900, TestRows: 8192, NLLInForce: .047, NLLNew: .046, NLLDiff: -.0011,
			ECEInForce: .01, ECENew: .008}}
	h.AddCalibrator(quick)
	quick.Published, quick.Reason, quick.Outcome = false, "period", "no change: NLL difference -0.00032 ± 0.00053: "+
		"the chance of that without a gain is up to 0.95, and must be below 0.002"
	quick.DecidedAt, quick.Evidence.NLLDiffSE = stamp(2*time.Minute), .0005
	h.AddCalibrator(quick)
	quick.Published, quick.Reason, quick.DecidedAt = true, "alarm", stamp(3*time.Minute)
	quick.Outcome = "published: vector, NLL 0.04700 → 0.04600, ECE 0.0100 → 0.0080 on 8192 newer rows"
	h.AddCalibrator(quick)
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := strings.ReplaceAll(chromium(t, srv.URL, "--dump-dom"), "\u202f", " ")
	for _, want := range []string{"Published: vector. On 8 192 newer rows: NLL 0.047 → 0.046 (−0.0011 ± 0.0010)",
		"raw: accuracy 73.50 %", "confidence 74.20 %", "calibrated: accuracy 84.20 %", "confidence 84.00 %",
		">calibrated 84.20 %<", ">its confidence 84.00 %<", "Raw: 73.50 % right, 74.20 % sure on average. Calibrated: ",
		"Class-wise ECE</dt><dd class=\"big\">1.31 %</dd><dd class=\"sub\">calibrated 0.42 %</dd>",
		"Published: temperature 1.2 of 900 rows. " +
			"On the 8 192 latest rows, those of the fit among them: NLL 0.047 → 0.046 (−0.0011), ECE 1.00 % → 0.80 %.",
		"a first answer, before a whole refit", "a refit on schedule", "On 8 192 newer rows: ", "(−0.0011 ± 0.0010)",
		"if it gained nothing, the chance of that is up to 0.95, and must be below 0.002."} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if v := verdictOf(t, dom); !strings.Contains(v, "The probabilities of single classes are off since 11:30:00: "+
		"class-wise ECE 1.31 %. ECE ") {
		t.Errorf("the verdict does not tell of classes: %s", v)
	}
	if t.Failed() {
		t.Log(dom)
	}
}

// TestChainOfInhibitorsInBrowser: what follows from an alert that another one stands for is under that one, not in the
// list.
func TestChainOfInhibitorsInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("m", "1", "", time.Hour))
	add := func(min int, rule, state, by string) {
		h.AddAlert(record.Alert{Schema: 1, Model: "m", Version: "1", Rule: rule, Kind: "anytime", State: state,
			Signal: "raw", Since: stamp(0), At: stamp(time.Duration(min) * time.Minute), InhibitedBy: by,
			Message: "confidence is off since about 2024-03-05T11:31:00Z"})
	}
	add(1, "calibration-raw", "firing", "")
	add(1, "calibration-calibrated", "firing", "m/1//calibration-raw")
	add(2, "accuracy-fall", "firing", "m/1//calibration-calibrated")
	add(3, "calibration-calibrated", "resolved", "m/1//calibration-raw")
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	root := item(t, dom, "Alarm: calibration-raw")
	for _, want := range []string{"accuracy-fall", "calibration-calibrated", "within bounds again",
		"off since about 11:31:00."} {
		if !strings.Contains(root, want) {
			t.Errorf("the root lacks %q: %s", want, root)
		}
	}
	for _, not := range []string{"Inhibited: ", "Over: "} {
		if strings.Contains(dom, not) {
			t.Errorf("the list has %q", not)
		}
	}
}

// TestHeadEventsInBrowser: what was decided about heads stands among the events, those of other models do not.
func TestHeadEventsInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("m", "2", "", time.Hour))
	srv := httptest.NewServer(scripted(New(Deps{History: h, Heads: &pageHeads{}}),
		steps+`await wait(() => document.querySelector('#log [data-kind="asked"]'));`))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	if got := item(t, dom, "New head requested: 2+head1"); !strings.Contains(got,
		"Accuracy is 0.712, of the reference rows 0.911.") {
		t.Errorf("the request does not say why: %s", got)
	}
	if strings.Contains(dom, "requested: 1+head") {
		t.Error("the events have heads of another model")
	}
}

// TestArrivedInBrowser: as long as there is nothing to show, the page says how far the rows have come, what they wait
// for, and opens the process status.
func TestArrivedInBrowser(t *testing.T) {
	f := func(logits int, waits []any, want string) {
		t.Helper()
		status := map[string]any{"counts": map[string]any{"rows": map[string]int{"logits": logits, "labels": 0},
			"joined": 0}, "waiting_for": waits}
		srv := httptest.NewServer(scripted(New(Deps{History: history.New(history.Config{}),
			Status: func() any { return status }}),
			steps+`await wait(() => document.querySelector("#arrived")?.textContent);`))
		defer srv.Close()
		dom := strings.ReplaceAll(chromium(t, srv.URL, "--dump-dom"), "\u202f", " ")
		for _, w := range []string{want, `<details id="statusbox" open="">`, ">none yet</option>"} {
			if !strings.Contains(dom, w) {
				t.Errorf("the empty page lacks %q", w)
			}
		}
	}
	labels := []any{map[string]any{"text": "waiting for labels/0 since 11:22:33, until 11:23:33"}}
	f(0, labels, "So far no row has arrived, on either topic.<")
	f(12345, nil, "So far: 12 345 predictions, 0 late labels, 0 of them joined.<")
	f(12345, labels, "0 of them joined. Now waiting for labels/0 since 11:22:33, until 11:23:33.<")
}

// TestLostConnectionInBrowser: a lost stream is said, and that it is there again; what was missed meanwhile is shown.
func TestLostConnectionInBrowser(t *testing.T) {
	h := synthetic()
	var streams atomic.Int32
	up := New(Deps{History: h})
	page := scripted(up, steps+`
const conn = document.getElementById("conn");
const seen = [];
new MutationObserver(() => seen.push(conn.dataset.state)).observe(conn, { childList: true });
await wait(() => document.getElementById("asof").textContent.includes("12:30:10"));
note("seen", seen.join(" "));
await wait(() => conn.dataset.state === "lost");
note("words", conn.textContent);`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/events" {
			page.ServeHTTP(w, r)
			return
		}
		switch streams.Add(1) {
		case 1: // ends at once, as that of a process that stops does
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("retry: 200\n\n"))
		case 2: // what takes its place is not ready
			h.AddSnapshot(snapshotAt("digits-resnet20", "2024-03-01", "", time.Hour+pane))
			http.Error(w, "starting", http.StatusServiceUnavailable)
		default: // the browser's virtual time stands while a stream is open
			ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
			defer cancel()
			up.ServeHTTP(w, r.WithContext(ctx))
		}
	}))
	defer srv.Close()
	dom := chromium(t, srv.URL+link, "--dump-dom")
	for _, want := range []string{"seen=live lost live", "words=connection lost, retrying"} {
		if !strings.Contains(dom, want) {
			_, notes, _ := strings.Cut(dom, "<pre>")
			t.Errorf("the page lacks %q after %d streams: %.300s", want, streams.Load(), notes)
		}
	}
}

// TestSilentKafkaInBrowser: a process that no broker answers is not live, however well the page reaches it.
func TestSilentKafkaInBrowser(t *testing.T) {
	status := map[string]any{"kafka": map[string]any{"silent_since": "2024-03-05T11:22:33.444Z",
		"error": "connection refused"}}
	srv := httptest.NewServer(scripted(New(Deps{History: synthetic(), Status: func() any { return status }}), steps+`
const conn = document.getElementById("conn");
const seen = []; // the stream of this test ends at once
const see = () => seen.push(conn.textContent + "|" + conn.dataset.state + "|" + conn.title);
new MutationObserver(see).observe(conn, { childList: true });
await wait(() => seen.some((s) => s.startsWith("Kafka")));
note("pill", seen.find((s) => s.startsWith("Kafka")));`))
	defer srv.Close()
	dom := chromium(t, srv.URL+link, "--dump-dom")
	want := "pill=Kafka does not answer since 2024-03-05&nbsp;11:22:33 UTC|lost|connection refused"
	if !strings.Contains(dom, want) {
		_, notes, _ := strings.Cut(dom, "<pre>")
		t.Errorf("the page lacks %q: %.300s", want, notes)
	}
}

// TestFailingTaskInBrowser: the page names a task that fails, where and why, and a record that was skipped.
func TestFailingTaskInBrowser(t *testing.T) {
	at := map[string]any{"topic": "plumbline.logits", "partition": 3, "offset": 812}
	status := map[string]any{
		"failing": []any{map[string]any{"task": "shard", "partition": 3, "since": "2024-03-05T11:22:33Z", "at": at,
			"cause": "panic: <b>no</b>", "next_try": "2024-03-05T11:23:33Z"}},
		"skipped": []any{map[string]any{"task": map[string]any{"task": "shard", "partition": 1}, "at": at,
			"cause": "panic: index", "when": "2024-03-05T11:20:00Z"}},
		"scale": map[string]any{"from": 4, "to": 12, "step": "shards end", "by": "ann", "why": "growth",
			"since": "2024-03-05T11:22:00Z", "waits_for_shards": []int{2, 3}}}
	srv := httptest.NewServer(scripted(New(Deps{History: synthetic(), Status: func() any { return status }}), steps+`
const box = document.getElementById("trouble");
await wait(() => !box.hidden);
note("box", box.textContent);`))
	defer srv.Close()
	dom := chromium(t, srv.URL+link, "--dump-dom")
	for _, want := range []string{"box=A task fails", "shard 3 fails since 2024-03-05&nbsp;11:22:33 at " +
		"plumbline.logits partition 3 offset 812: panic: &lt;b&gt;no&lt;/b&gt;. Next try at",
		"shard 1 skipped a record at",
		"by ann: growth. shards end; waits for shards: 2, 3."} {
		if !strings.Contains(dom, want) {
			_, notes, _ := strings.Cut(dom, "<pre>")
			t.Errorf("the page lacks %q: %.600s", want, notes)
		}
	}
}

// TestManyTroublesInBrowser: of many troubles the first is shown and the others are folded, so that they do not push
// the alarm out of sight; what a reader opened stays open when the next status comes.
func TestManyTroublesInBrowser(t *testing.T) {
	srv := httptest.NewServer(scripted(New(Deps{History: synthetic()}), steps+`
const { drawTrouble } = await import("/assets/js/status.js");
const box = document.createElement("div");
document.body.append(box);
const said = (n) => [...Array(n).keys()].map((i) => ({ title: "t" + i, count: n, since: "s", text: "x", mend: "m" }));
const shown = () => [...box.querySelectorAll("p")].filter((p) => p.checkVisibility()).length;
for (const n of [1, 2, 3, 6]) {
  drawTrouble(box, { troubles: said(n) });
  note("shown" + n, shown() + (box.querySelector("summary")?.textContent || ""));
}
box.querySelector("details").open = true;
drawTrouble(box, { troubles: said(7) });
note("open", shown());
drawTrouble(box, { troubles: [{ kind: "scores", title: "Logits", count: 1, since: "s", text: "x", mend: "m" }] });
note("scores", box.textContent);`))
	defer srv.Close()
	dom := chromium(t, srv.URL+link, "--dump-dom")
	for _, want := range []string{"shown1=1<", "shown2=2<", "shown3=12 more<", "shown6=15 more<", "open=7<",
		"scores=Scores look wrongLogits since s: x."} {
		if !strings.Contains(dom, want) {
			_, notes, _ := strings.Cut(dom, "<pre>")
			t.Errorf("the page lacks %q: %.600s", want, notes)
		}
	}
}

// TestWrongClockInBrowser: the page names the partition that everything waits for, and a model whose rows are rejected
// because their time is ahead, from the time on at which it was opened.
func TestWrongClockInBrowser(t *testing.T) {
	status := map[string]any{
		"waiting_for": []any{map[string]any{"text": "waiting for plumbline.logits/3 since 11:22:33"}},
		"counts":      map[string]any{"ahead_by_model": map[string]any{"over/v1": 7}}}
	srv := httptest.NewServer(scripted(New(Deps{History: synthetic(), Status: func() any { return status }}), steps+`
const box = document.getElementById("trouble");
const conn = document.getElementById("conn");
const seen = []; // the stream of this test ends at once
new MutationObserver(() => seen.push(conn.textContent + "|" + conn.dataset.state)).observe(conn, { childList: true });
await wait(() => seen.some((s) => s.startsWith("waiting")));
note("pill", seen.find((s) => s.startsWith("waiting")));
note("hidden", box.hidden);
const { drawTrouble } = await import("/assets/js/status.js");
drawTrouble(box, { counts: { ahead_by_model: { "fast/v1": 3, "over/v1": 7 } } }); // as of later
note("box", box.textContent);`))
	defer srv.Close()
	dom := chromium(t, srv.URL+link, "--dump-dom")
	for _, want := range []string{"pill=waiting for plumbline.logits/3 since 11:22:33|quiet", "hidden=true",
		"box=A clock is aheadRows of fast/v1 were rejected since"} {
		if !strings.Contains(dom, want) {
			_, notes, _ := strings.Cut(dom, "<pre>")
			t.Errorf("the page lacks %q: %.600s", want, notes)
		}
	}
	if strings.Contains(dom, "Rows of over/v1") {
		t.Error("the page tells of a clock that is right again")
	}
}

// TestSliceFirstInBrowser: of the first pane a slice may be there before the whole; who asks for neither is shown the
// whole.
func TestSliceFirstInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("m", "1", "region=eu", time.Hour))
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	if dom := chromium(t, srv.URL, "--dump-dom"); !strings.Contains(dom, "Waiting for the first labels") {
		t.Error("a page that asks for nothing shows the slice that is there first")
	}
	if dom := chromium(t, srv.URL+"/?model=m&version=1&slice=region%3Deu", "--dump-dom"); !strings.Contains(dom,
		`id="verdict" class="verdict" data-state="ok">`) {
		t.Error("a page that asks for the slice does not show it")
	}
	h.AddSnapshot(snapshotAt("m", "1", "", time.Hour))
	if dom := chromium(t, srv.URL+"/?model=m&version=1&slice=region%3Dgone", "--dump-dom"); !strings.Contains(dom,
		"The link asks for slice region=gone.") {
		t.Error("a slice that is gone: the whole is not shown in its place")
	}
}

// TestFocusInBrowser: who reads in the list of events, or has a marker's tip open, keeps it when new numbers come.
func TestFocusInBrowser(t *testing.T) {
	srv := httptest.NewServer(scripted(New(Deps{History: anytime(synthetic())}), steps+`
const paint = () => { for (let i = 0; i < 2; i++) document.querySelector("#legend button").click(); };
const a = await wait(() => document.querySelector("#log > li:not(:has(> div .chip)) > a.diagram"));
a.focus();
paint();
note("link", document.activeElement === a);
document.getElementById("onlyslice").click(); // the list is drawn anew
note("again", document.activeElement !== a && document.activeElement.href === a.href);
const at = () => document.activeElement.dataset.at;
const marker = await wait(() => [...document.querySelectorAll(".mark")].pop());
marker.focus();
const before = at();
document.getElementById("onlyslice").click();
await new Promise((r) => setTimeout(r, 300));
note("marker", before === at() && !document.getElementById("tip").hidden);
document.activeElement.blur();
note("tip", document.getElementById("tip").hidden);`))
	defer srv.Close()
	dom := chromium(t, srv.URL+link, "--dump-dom")
	for _, want := range []string{"link=true<", "again=true<", "marker=true<", "tip=true<"} {
		if !strings.Contains(dom, want) {
			_, notes, _ := strings.Cut(dom, "<pre>")
			t.Errorf("the page lacks %q: %.300s", want, notes)
		}
	}
}

// TestKeyboardInBrowser: what a key opens or closes leaves the focus there, never nowhere.
func TestKeyboardInBrowser(t *testing.T) {
	srv := httptest.NewServer(New(Deps{History: anytime(synthetic())}))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	page := newTab(ctx, t, 1200, 900)
	page.call("Page.navigate", map[string]any{"url": srv.URL})
	on := func(id string) { page.await(ctx, fmt.Sprintf(`document.activeElement.id === %q`, id)) }
	enter := func(selector string) {
		t.Helper()
		page.await(ctx, fmt.Sprintf(`(() => { const e = document.querySelector(%q);
			e?.focus(); return Boolean(e) && document.activeElement === e; })()`, selector))
		page.press("Enter", "\r")
	}
	page.await(ctx, `document.querySelector("#verdict strong") && document.activeElement === document.body`)
	enter("#log a.diagram")
	page.await(ctx, `location.search.includes("at=") && !document.getElementById("pinbar").hidden`)
	on("h-rel")
	page.press("Tab", "")
	page.await(ctx, `document.activeElement.closest("#legend") !== null`)
	enter("#pinbar button")
	page.await(ctx, `document.getElementById("pinbar").hidden`)
	on("scrub")
	enter("#log a.chip")
	page.await(ctx, `location.search.includes("slice=region")`)
	on("verdict")
	page.call("Page.reload", nil)
	page.await(ctx, `document.querySelector("#verdict strong") && document.activeElement === document.body`)
}

// layout notes what is cut, what is wider than the page, and how far the chart moves when a moment is pinned.
const layout = steps + `
await wait(() => document.querySelector("#ecechart canvas"));
const place = () => Math.round(document.getElementById("ecechart").getBoundingClientRect().top + scrollY);
let last = -1, still = 0; // what loads late is there before anything is measured
await wait(() => { const p = place(); still = p === last ? still + 1 : 0; last = p; return still >= 10; });
const before = place();
const s = document.getElementById("scrub");
s.value = "100";
s.dispatchEvent(new Event("input"));
await wait(() => !document.getElementById("pinbar").hidden);
note("moved", place() - before);
note("wide", document.documentElement.scrollWidth - document.documentElement.clientWidth);
const cut = [...document.querySelectorAll(".tile dd")].filter((e) => e.scrollWidth > e.clientWidth);
note("cut", cut.map((e) => e.textContent).join("|"));
const named = (e) => e.labels && e.labels.length || e.textContent.trim() || e.getAttribute("aria-label");
const names = [...document.querySelectorAll("button, select, input, summary, a")]
  .filter((e) => e.checkVisibility() && !named(e));
note("nameless", names.map((e) => e.outerHTML).join("|"));
`

// TestLayoutInBrowser: at three sizes no number is cut, nothing is wider than the page, nothing moves when a moment is
// pinned, and all that can be used has a name.
func TestLayoutInBrowser(t *testing.T) {
	srv := httptest.NewServer(scripted(New(Deps{History: anytime(synthetic()), Heads: &pageHeads{}}), layout))
	defer srv.Close()
	for _, size := range []string{"1440,900", "1024,768", "500,844"} {
		dom := chromium(t, srv.URL+link, "--dump-dom", "--window-size="+size)
		for _, want := range []string{"<pre>moved=0</pre>", "<pre>wide=0</pre>", "<pre>cut=</pre>",
			"<pre>nameless=</pre>"} {
			if !strings.Contains(dom, want) {
				_, notes, _ := strings.Cut(dom, "<pre>")
				t.Errorf("%s: the page lacks %q: %.600s", size, want, notes)
			}
		}
	}
}

// TestLossInBrowser: where rows may be missing because a state was lost, the page says so beside the numbers.
func TestLossInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	s := snapshotAt("m", "1", "", time.Hour)
	s.Lost = &record.Lost{Since: stamp(-12 * time.Hour), Until: stamp(time.Minute), Tasks: []string{"shards/3"}}
	h.AddSnapshot(s)
	srv := httptest.NewServer(scripted(New(Deps{History: h}), steps+`
const said = await wait(() => document.querySelector(".tile dd .bad"));
note("cut", said.parentElement.scrollWidth > said.parentElement.clientWidth);`))
	defer srv.Close()
	dom := chromium(t, srv.URL+"/?model=m&version=1", "--dump-dom")
	for _, want := range []string{"rows may be missing from 2024-03-04&nbsp;23:30:00 to 11:31:00",
		"The state of shards/3 was lost", "<pre>cut=false</pre>"} {
		if !strings.Contains(dom, want) {
			_, from, _ := strings.Cut(dom, "Labelled rows")
			t.Errorf("the page lacks %q: %.600s", want, from)
		}
	}
}

// TestBehindInBrowser: a page of a process that reads old records, and has many of them before it, is not live.
func TestBehindInBrowser(t *testing.T) {
	srv := httptest.NewServer(scripted(New(Deps{History: synthetic()}), steps+`
const { behind, pulse } = await import("/assets/js/verdict.js");
const task = ([offsets, seconds], i) => ["shard/" + i, { logits: { offsets, seconds } }];
const of = (...lags) => behind({ lag: Object.fromEntries(lags.map(task)) });
note("few", of([999, 9000]));
note("new", of([50000, 20]));
note("most", of([50000, 7200], [3, 90000], [2000, 3000]));
note("none", behind(undefined) + behind({}));
note("late", pulse("live", 0, {}, false, 7200).text);
note("live", pulse("live", 0, {}, false, 0).text);
note("lost", pulse("lost", 0, {}, false, 7200).text);`))
	defer srv.Close()
	dom := strings.ReplaceAll(chromium(t, srv.URL+link, "--dump-dom"), "\u202f", " ")
	for _, want := range []string{"few=0<", "new=0<", "most=7200<", "none=0<", "late=catching up: 2 h behind<",
		"live=live<", "lost=connection lost, retrying<"} {
		if !strings.Contains(dom, want) {
			_, notes, _ := strings.Cut(dom, "<pre>")
			t.Errorf("the page lacks %q: %.600s", want, notes)
		}
	}
}
