//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// TestTroubles makes the mistakes of new producers: records in a format that nobody configured, and batches whose key
// is their first id where rows have to be sent by id. Log, status, page and doctor say so, and what mends it.
// PLUMBLINE_SCREENSHOTS names a directory for pictures of the page.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, kind, text, mend, doctor string }{
		"JSON into a topic of Arrow": {"group: G", "refused", "not_arrow at ", "Inputs in docs/schema.md",
			"not_arrow"},
		"batches by their first id": {"topics: {keyed: true}", "apart", "of the last 1000 labels ",
			"every row must go to the partition of its id", "ids are in both topics"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setUp(t, c.config)
			runOK(t, "topics", "create", "-c", s.file)
			p := run(t, s)
			sendMistake(t, s, c.kind)
			p.wait(time.Minute, "say what is lost", func() bool {
				for _, tr := range troubles(t, s) {
					if tr.Kind == c.kind && strings.Contains(tr.Text, c.text) && strings.Contains(tr.Mend, c.mend) {
						return true
					}
				}
				return false
			})
			log, err := os.ReadFile(p.log)
			// A line for each topic and reason.
			if n := strings.Count(string(log), `mend=`); err != nil || n < 1 || n > 2 {
				t.Errorf("the log says it %d times, %v\n%s", n, err, log)
			}
			said, err := exec.Command(binary, "doctor", "-c", s.file).Output()
			if err == nil || !strings.Contains(string(said), c.doctor) {
				t.Errorf("doctor ends with %v and says\n%s", err, said)
			}
			isOnPage(t, s, c.kind, c.text, c.mend)
			p.stop()
		})
	}
}

// isOnPage looks at the page as people see it, but for its events: a browser waits for the end of what it loads.
func isOnPage(t *testing.T, s settings, name string, texts ...string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Log("no chromium on PATH: the page is not looked at")
		return
	}
	target := &url.URL{Scheme: "http", Host: s.listen}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/events" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("retry: 600000\n\n"))
			return
		}
		pass.ServeHTTP(w, r)
	}))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	look := func(what string) []byte {
		cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu",
			"--disable-background-networking", "--hide-scrollbars", "--user-data-dir="+t.TempDir(),
			"--virtual-time-budget=8000", "--window-size=1200,700", what, srv.URL)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("chromium %s: %v", what, err)
		}
		return out
	}
	page := string(look("--dump-dom"))
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q:\n%s", text, page)
		}
	}
	if dir := os.Getenv("PLUMBLINE_SCREENSHOTS"); dir != "" {
		look("--screenshot=" + filepath.Join(dir, "trouble-"+name+".png"))
	}
}

type troubleStatus struct{ Kind, Text, Mend string }

func troubles(t *testing.T, s settings) []troubleStatus {
	t.Helper()
	r, err := http.Get("http://" + s.listen + "/api/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var st struct {
		Process struct{ Troubles []troubleStatus }
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &st)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st.Process.Troubles
}

// sendMistake sends the rows as such a producer does.
func sendMistake(t *testing.T, s settings, kind string) {
	t.Helper()
	rows := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	data := &inputData{rows.K, rows.Scores, rows.Label}
	format := "json"
	if kind == "apart" {
		format = "arrow"
	}
	var ms []kafka.Message
	for what, of := range map[string]struct {
		topic string
		batch int
	}{"predictions": {"logits", 50}, "labels": {"labels", 40}} {
		for from := 0; from < setupRows; from += of.batch {
			value, _ := inputRecords[format+" "+what](data, from, min(from+of.batch, setupRows))
			ms = append(ms, kafka.Message{Topic: s.topic(of.topic), Key: []byte(inputID(from)), Value: value,
				Time: rowTime(from)})
		}
	}
	w := &kafka.Writer{Addr: kafka.TCP(brokers...), Balancer: &kafka.Murmur2Balancer{Consistent: true},
		Transport: &kafka.Transport{}}
	if err := w.WriteMessages(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
