//go:build integration

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// chromium runs the browser on url with args and returns its standard output; the test is skipped where there is none.
func chromium(t *testing.T, url string, args ...string) string {
	t.Helper()
	return chromiumAllowing(t, "503", url, args...)
}

// chromiumAllowing is chromium for a page to which the server answers with a status that the console tells of.
func chromiumAllowing(t *testing.T, status, url string, args ...string) string {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: the page is not tried in a browser")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		"--virtual-time-budget=8000", "--enable-logging=stderr",
	}, append(args, url)...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	for _, line := range strings.Split(stderr.String(), "\n") {
		// The page's own errors, a broken content security policy among them.
		if strings.Contains(line, "CONSOLE") && !strings.Contains(line, status) {
			t.Errorf("console: %s", line)
		}
	}
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, stderr.String())
	}
	return string(out)
}

// still is the handler without the event stream, which would keep a page loading for ever.
func still(h *history.History) http.Handler {
	all := testHandler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/events" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("retry: 600000\n\n"))
			return
		}
		all.ServeHTTP(w, r)
	})
}

func TestPageInBrowser(t *testing.T) {
	srv := httptest.NewServer(still(synthetic()))
	defer srv.Close()
	f := func(query string, want ...string) {
		t.Helper()
		dom := chromium(t, srv.URL+"/"+query, "--dump-dom")
		for _, w := range want {
			if !strings.Contains(dom, w) {
				t.Errorf("%q: the page lacks %q", query, w)
			}
		}
		if t.Failed() {
			t.Log(dom)
		}
	}
	s := snapshotAt("digits-resnet20", "2024-03-01", "", time.Hour)
	thin := "\u202f"
	f("", "ECE calibrated", percent(*s.Raw.ECE), percent(*s.Calibrated.ECE), "5"+thin+"043", "T 1.619", "revision 3",
		"▲ 1 slice", "Calibrator published: revision 3", "as of 2024-03-05", "<canvas", `class="gap raw"`,
		"Reliability diagram. raw")
	f("?model=digits-resnet20&version=2024-03-01&slice=region%3Deu&window=last-5000", "▲ firing", ">ece-calibrated<",
		">critical<")
	f("?model=gone", "digits-resnet20")
}

// TestModelSearchInBrowser: of more versions than the page lists, a person finds one by typing a part of its name, and
// sees its numbers.
func TestModelSearchInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	for i := range defaultVersions + 50 {
		h.AddSnapshot(snapshotAt(fmt.Sprintf("model-%03d", i), "1", "", time.Hour))
	}
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	page := newTab(ctx, t, 1200, 900)
	last := fmt.Sprintf("model-%03d", defaultVersions+49)
	page.call("Page.navigate", map[string]any{"url": srv.URL})
	page.await(ctx, `!!document.querySelector("#search") && !document.querySelector("#search").hidden`)
	page.await(ctx, fmt.Sprintf(`document.querySelector("#search span").textContent === "First %d of %d versions"`,
		defaultVersions, defaultVersions+50))
	page.await(ctx, `document.querySelector("[name=search]").focus() === undefined`)
	page.call("Input.insertText", map[string]any{"text": last})
	page.press("Enter", "\r")
	page.await(ctx, fmt.Sprintf(`[...document.querySelector("[name=model]").options].some((o) => o.value === %q)`,
		last))
	page.await(ctx, fmt.Sprintf(`(() => { const m = document.querySelector("[name=model]"); m.value = %q;
		m.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`, last))
	page.await(ctx, fmt.Sprintf(`location.search.includes("model=%s") &&
		document.body.innerText.includes("5\u202f043")`, last))
}

func TestEmptyPageInBrowser(t *testing.T) {
	srv := httptest.NewServer(still(history.New(history.Config{})))
	defer srv.Close()
	if dom := chromium(t, srv.URL, "--dump-dom"); !strings.Contains(dom, "Waiting for the first labels") {
		t.Errorf("got %s, want the empty state", dom)
	}
}

func TestUnlabelledPageInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(record.Snapshot{Model: "m", Version: "1", At: stamp(0), Window: record.Window{Name: "w", Kind: "time",
		Start: stamp(0), End: stamp(1)}, Predictions: 91})
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	for _, want := range []string{"no labelled rows yet", "of 91 predictions", "no labelled rows in this window",
		"No alarms and no refits yet"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q: %s", want, dom)
		}
	}
}

func percent(v float64) string {
	return strconv.FormatFloat(100*v, 'f', 2, 64) + "\u202f%"
}

// TestScreenshots writes pictures of the page for people to look at.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("PLUMBLINE_SCREENSHOTS")
	if dir == "" {
		t.Skip("PLUMBLINE_SCREENSHOTS names no directory: no pictures wanted")
	}
	srv := httptest.NewServer(still(synthetic()))
	defer srv.Close()
	for _, theme := range []struct{ name, flag string }{{"dark", "0"}, {"light", "1"}} {
		for _, size := range []struct{ name, flag string }{{"desktop", "1400,900"}, {"phone", "390,844"},
			{"tall", "500,3000"}} {
			file := filepath.Join(dir, size.name+"-"+theme.name+".png")
			chromium(t, srv.URL+"/?"+series, "--screenshot="+file, "--window-size="+size.flag,
				"--blink-settings=preferredColorScheme="+theme.flag)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("no picture: %v", err)
			}
		}
	}
}

// item returns the entry of the list of events that has text; its own list of what follows from it is part of it.
func item(t *testing.T, dom, text string) string {
	t.Helper()
	_, log, _ := strings.Cut(dom, `<ol id="log"`)
	log, _, _ = strings.Cut(log, "</ol>")
	_, log, _ = strings.Cut(log, ">")
	for _, part := range strings.Split(log, `<span class="glyph"`)[1:] {
		if strings.Contains(part, text) {
			return part
		}
	}
	t.Errorf("no event has %q: %s", text, log)
	return ""
}

// TestLinkOfAlertInBrowser: the link of an alert opens its model, version, slice and window at its moment, with its
// evidence. A proxy may serve the page below a path.
func TestLinkOfAlertInBrowser(t *testing.T) {
	srv := httptest.NewServer(http.StripPrefix("/plumb", still(anytime(synthetic()))))
	defer srv.Close()
	const link = "/plumb/?at=2024-03-05T11%3A54%3A05Z&model=digits-resnet20&slice=&version=2024-03-01&window=last-5000"
	dom := chromium(t, srv.URL+link, "--dump-dom")
	then, now := snapshotAt("digits-resnet20", "2024-03-01", "", 24*time.Minute), snapshotAt("digits-resnet20",
		"2024-03-01", "", time.Hour)
	for _, want := range []string{percent(*then.Raw.ECE), percent(*then.Calibrated.ECE),
		"Shown as of 2024-03-05&nbsp;11:54:00 UTC", "▲ firing", ">calibration-calibrated<", ">critical",
		"since about 11:51:00", `class="gap raw"`} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page of a past moment lacks %q: %s", want, dom)
		}
	}
	if strings.Contains(dom, percent(*now.Calibrated.ECE)) {
		t.Error("the page of a past moment shows the newest ECE")
	}
	// A window by time that had not ended is not shown; the one before it is.
	dom = chromium(t, srv.URL+strings.Replace(link, "last-5000", "5m", 1), "--dump-dom")
	if want := "Shown as of 2024-03-05&nbsp;11:50:00 UTC"; !strings.Contains(dom, want) {
		t.Errorf("window 5m at 11:54:05 lacks %q", want)
	}
	dom = chromium(t, srv.URL+strings.Replace(link, "2024-03-05", "2024-03-04", 1), "--dump-dom")
	if !strings.Contains(dom, "That moment is not kept") {
		t.Error("a moment before all that is kept: the page does not say so")
	}
	dom = chromium(t, srv.URL+strings.Replace(link, "slice=", "slice=region%3Dmars", 1), "--dump-dom")
	if !strings.Contains(dom, "The link asks for slice region=mars.") ||
		!strings.Contains(dom, `class="pinbar" role="status" hidden`) {
		t.Error("a slice that is gone: the page does not say so, or shows the moment of something else")
	}
}

// TestInhibitedAlertsInBrowser: what is inhibited stands under its root, with the root's evidence, and is no alarm of
// its own.
func TestInhibitedAlertsInBrowser(t *testing.T) {
	srv := httptest.NewServer(still(anytime(synthetic())))
	defer srv.Close()
	at := "/?model=digits-resnet20&version=2024-03-01&window=last-5000&slice=&at=2024-03-05T11:54:00Z"
	dom := chromium(t, srv.URL+at, "--dump-dom")
	root := item(t, dom, "Alarm: calibration-calibrated")
	for _, want := range []string{`aria-label="Follows from it"`, "worse-nll is over its limit for all rows since ",
		"region=us",
		"It is part of this alarm and raises none itself.",
		"calibrated confidence is overconfident",
		"Evidence: by chance at most once in 9.8 years; overconfident", "alarm from 15.7",
		"Since about 11:51:00 (an estimate)", "(0.600, 0.667]",
		"−12.37", `href="?at=2024-03-05T11%3A54%3A00Z`, " open="} {
		if !strings.Contains(strings.ToLower(root), strings.ToLower(want)) {
			t.Errorf("the root alert lacks %q: %s", want, root)
		}
	}
	if got := item(t, dom, "Calibrator published: revision 3"); !strings.Contains(got,
		"calibration-raw is over its limit for all rows") ||
		!strings.Contains(got, "The calibrator corrects it, so it raises no alarm.") {
		t.Errorf("the calibrator that answers an alert does not show it: %s", got)
	}
	item(t, dom, "Part of another alarm: lost-root") // nothing is hidden
	for _, rule := range []string{"worse-nll", "calibration-raw", "lost-root"} {
		if strings.Contains(dom, "Alarm: "+rule) {
			t.Errorf("%s is inhibited, and is shown as an alarm", rule)
		}
	}
	us := chromium(t, srv.URL+"/?model=digits-resnet20&version=2024-03-01&window=last-5000&slice=region%3Dus",
		"--dump-dom")
	if !strings.Contains(us, "▲ all rows and 1 slice") || !strings.Contains(us, "region=us: 1 follows from another") {
		t.Errorf("the tile of a slice whose alert is inhibited does not say so: %s", us)
	}
}

// TestOneMomentInBrowser: the curve of a single snapshot, as after the first one or a restart, has minutes on its axis.
func TestOneMomentInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(snapshotAt("m", "1", "", time.Hour))
	srv := httptest.NewServer(scripted(New(Deps{History: h}), steps+`
await wait(() => document.querySelector("#ecechart canvas"));
const drawn = [], draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  drawn.push(text);
  draw.call(this, text, ...at);
};
document.querySelector("#legend button").click(); // it is drawn anew
await wait(() => drawn.some((text) => /^[0-9]{2}[:-]/.test(text)));
note("axis", drawn.filter((text) => /^[0-9]{2}[:-]/.test(text)).join(" "));`))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	_, axis, _ := strings.Cut(dom, "<pre>axis=")
	axis, _, _ = strings.Cut(axis, "</pre>")
	if at := stamp(time.Hour).Std().Format("15:04"); strings.Contains(axis, "-") || !strings.Contains(axis, at) {
		t.Errorf("the axis has %q, want minutes about %s", axis, at)
	}
}
