//go:build integration

package web

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/sinks/history"
)

// headsPage has a head in every state that the panel tells apart.
//
//go:embed testdata/heads.json
var headsPage []byte

// pageHeads gives headsPage, and takes every order but those about head1.
type pageHeads struct {
	mu     sync.Mutex
	orders []HeadOrder
}

func (p *pageHeads) Heads() any { return json.RawMessage(headsPage) }

func (p *pageHeads) HeadOrder(_ context.Context, o HeadOrder) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders = append(p.orders, o)
	if o.ID == "m/1+head1" {
		return nil, fmt.Errorf("%w: %s: its artefact is gone", ErrOrder, o.ID)
	}
	return o, nil
}

// scripted is the page, which runs a script of the test beside its own.
func scripted(h http.Handler, script string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/events":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("retry: 600000\n\n"))
		case "/try.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(script))
		case "/":
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			for k, v := range rec.Header() {
				if k != "Content-Length" {
					w.Header()[k] = v
				}
			}
			_, _ = w.Write(bytes.Replace(rec.Body.Bytes(), []byte("</head>"),
				[]byte(`<script type="module" src="/try.js"></script></head>`), 1))
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// steps are what a script of the test has: wait polls, note leaves a text in the page, button finds one by its order.
const steps = `
const wait = (ok) => new Promise((r) => {
  const t = setInterval(() => { const v = ok(); if (v) { clearInterval(t); r(v); } }, 20);
});
const note = (name, text) => {
  const p = document.createElement("pre");
  p.textContent = name + "=" + text;
  document.body.append(p);
};
const button = (key) => [...document.querySelectorAll("#headlist [data-key]")].find((b) => b.dataset.key === key);
const dialog = () => document.querySelector("dialog[open]");
`

// TestHeadsInBrowser: what the panel says of a head in each state.
func TestHeadsInBrowser(t *testing.T) {
	h := New(Deps{History: synthetic(), Control: &recorded{}, Heads: &pageHeads{}})
	srv := httptest.NewServer(scripted(h, steps+`
await wait(() => button("pin m/1+head3"));
note("buttons", [...document.querySelectorAll("#headlist button")].map((b) => b.dataset.key).join("|"));
`))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	thin := "\u202f"
	for _, want := range []string{
		`aria-label="Progress of m/1+head4"`, "42 % cross_entropy_slow, validation NLL 0.713, attempt 1 on gpu-a",
		`aria-label="Validation NLL of m/1+head4 so far: from 1.100 to 0.713, lowest 0.713"`,
		"1st in the queue, requested at", "2nd in the queue, requested at",
		"accuracy is 0.712, of the reference rows 0.911",
		"its trainer is lost", "No sign of life of gpu-b for 94" + thin + "s.",
		"On 2" + thin + "000 validation rows", "On 4" + thin + "210 rows of the stream", "71.10" + thin + "%", "84.30" +
			thin + "%", "Chance that it is no better: at most 1 in over 10¹²", "proved from 1 in 20",
		"Published by ann, ", "the shift is real", "to be served", "given up after 3 attempts: out of memory",
		"Curves of 2 trainings; taken: au",
		"cross_entropy from 0.900 to 0.660, lowest 0.660; au from 0.800 to 0.610, lowest 0.610",
		"buttons=cancel n/1+head1|cancel m/2+head1|cancel m/1+head5|cancel m/1+head4|pin m/1+head3|" +
			"rollback m/1+head3|rollback m/1+head2|auto m/1+head2|pin m/1+head1|rollback m/1+head1",
	} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		_, part, _ := strings.Cut(dom, `<section id="heads"`)
		t.Log(part)
	}
}

// TestHeadOrderInBrowser: an order asks who and why, is sent once both are said, is refused in words, and leaves the
// reader where it was taken up.
func TestHeadOrderInBrowser(t *testing.T) {
	book := &pageHeads{}
	h := New(Deps{History: synthetic(), Control: &recorded{}, Heads: book})
	srv := httptest.NewServer(scripted(h, steps+`
const start = await wait(() => button("pin m/1+head3"));
start.focus();
start.click();
let d = await wait(dialog);
note("focus", document.activeElement.name);
note("name", document.getElementById(d.getAttribute("aria-labelledby")).textContent);
note("described", document.getElementById(d.getAttribute("aria-describedby")).textContent);
d.querySelector("[type=submit]").click(); // nothing is filled in: the browser asks for it
note("open", String(d.open));
d.querySelector("[name=by]").value = "ben";
d.querySelector("[name=why]").value = "seen in the stream";
d.querySelector("[type=submit]").click();
await wait(() => !document.querySelector("dialog"));
note("back", document.activeElement.dataset.key);
const again = button("rollback m/1+head1");
again.focus(); // as a person's click does
again.click();
d = await wait(dialog);
note("focus2", document.activeElement.name + " " + d.querySelector("[name=by]").value);
d.querySelector("[name=why]").value = "a try";
d.querySelector("[type=submit]").click();
await wait(() => d.querySelector("[role=alert]").textContent);
note("refusal", d.querySelector("[role=alert]").textContent + " " + d.open);
d.querySelector("button[type=button]").click(); // do nothing
await wait(() => !document.querySelector("dialog"));
note("end", document.activeElement.dataset.key);
`))
	defer srv.Close()
	dom := chromiumAllowing(t, "409", srv.URL, "--dump-dom")
	for _, want := range []string{"focus=by<", "name=Publish: m/1+head3<", "described=Servers that ask", "open=true<",
		"back=pin m/1+head3<", "focus2=why ben<",
		"refusal=Refused: ", "m/1+head1: its artefact is gone true<", "end=rollback m/1+head1<"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		_, part, _ := strings.Cut(dom, "<pre>")
		t.Log(part)
	}
	book.mu.Lock()
	defer book.mu.Unlock()
	want := []HeadOrder{{"pin", "m/1+head3", "ben", "seen in the stream"}, {"rollback", "m/1+head1", "ben", "a try"}}
	if fmt.Sprint(book.orders) != fmt.Sprint(want) {
		t.Errorf("orders %v, want %v", book.orders, want)
	}
}

// TestHeadOrderWithoutControl: where orders are not taken over HTTP, the dialog says so.
func TestHeadOrderWithoutControl(t *testing.T) {
	book := &pageHeads{}
	srv := httptest.NewServer(scripted(New(Deps{History: history.New(history.Config{}), Heads: book}), steps+`
(await wait(() => button("cancel m/2+head1"))).click();
const d = await wait(dialog);
d.querySelector("[name=by]").value = "ben";
d.querySelector("[name=why]").value = "not wanted";
d.querySelector("[type=submit]").click();
note("refusal", await wait(() => d.querySelector("[role=alert]").textContent));
`))
	defer srv.Close()
	if dom := chromiumAllowing(t, "403", srv.URL, "--dump-dom"); !strings.Contains(dom,
		"refusal=Refused: control over HTTP is off: set http.control: true") || len(book.orders) != 0 {
		t.Errorf("orders %v, page %s", book.orders, dom)
	}
}

// TestHeadsScreenshots writes pictures of the panel and its dialog for people to look at.
func TestHeadsScreenshots(t *testing.T) {
	dir := os.Getenv("PLUMBLINE_SCREENSHOTS")
	if dir == "" {
		t.Skip("PLUMBLINE_SCREENSHOTS names no directory: no pictures wanted")
	}
	for name, script := range map[string]string{
		"heads": `
await wait(() => button("pin m/1+head3"));
document.getElementById("content").hidden = true;
document.querySelector("[data-key='m/1+head2']").open = true;`,
		"heads-order": `
(await wait(() => button("pin m/1+head3"))).click();
document.getElementById("content").hidden = true;`,
	} {
		srv := httptest.NewServer(scripted(New(Deps{History: synthetic(), Control: &recorded{}, Heads: &pageHeads{}}),
			steps+script))
		for _, size := range []struct{ name, flag string }{{"desktop", "1200,1300"}, {"phone", "390,1700"}} {
			for _, theme := range []struct{ name, flag string }{{"dark", "0"}, {"light", "1"}} {
				file := filepath.Join(dir, name+"-"+size.name+"-"+theme.name+".png")
				chromium(t, srv.URL+"/?"+series, "--screenshot="+file, "--window-size="+size.flag,
					"--blink-settings=preferredColorScheme="+theme.flag)
				if _, err := os.Stat(file); err != nil {
					t.Errorf("no picture: %v", err)
				}
			}
		}
		srv.Close()
	}
}
