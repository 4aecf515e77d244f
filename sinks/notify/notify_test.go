package notify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// moment is a time of a test.
func moment(text string) record.Time {
	t, err := record.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

// topic has alert records and Idle ones, and more as they are added.
type topic struct {
	mu      sync.Mutex
	records []pipeline.Record
	grown   chan struct{} // closed when there are more
	offset  int64
}

func newTopic() *topic { return &topic{grown: make(chan struct{})} }

func (s *topic) put(r pipeline.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
	close(s.grown)
	s.grown = make(chan struct{})
}

func (s *topic) add(key string, value []byte) {
	s.put(pipeline.Record{Topic: "alerts", Partition: 2, Offset: s.offset, Key: []byte(key),
		Value: value})
	s.offset++
}

func (s *topic) alert(t *testing.T, rule, state string) {
	t.Helper()
	b, err := json.Marshal(record.Alert{
		Schema:    1,
		Model:     "m",
		Version:   "1",
		Slice:     "region=eu",
		Rule:      rule,
		Severity:  "critical",
		State:     state,
		Since:     moment("2026-01-01T00:00:00Z"),
		At:        moment("2026-01-01T00:10:00Z"),
		Value:     0.07,
		Threshold: 0.05,
		Rows:      1200,
		Message:   rule + " " + state,
		Window:    "last-5000",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.add("m/1/region=eu/"+rule, b)
}

func (s *topic) idle() { s.put(pipeline.Record{Idle: true}) }

// open is a source that begins at the start.
func (s *topic) open() Source { return &reader{topic: s} }

type reader struct {
	*topic
	next int
}

func (r *reader) Close() error { return nil }

func (r *reader) Next(ctx context.Context) (pipeline.Record, error) {
	for {
		r.mu.Lock()
		left, grown := r.records[r.next:], r.grown
		r.mu.Unlock()
		if len(left) > 0 {
			r.next++
			return left[0], nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return pipeline.Record{}, ctx.Err()
		}
	}
}

// server records what it is sent, and answers with the statuses that it is given, then 200.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	bodies   []string
	headers  []http.Header
	paths    []string
}

func newServer(t *testing.T, statuses ...int) *server {
	t.Helper()
	s := &server{statuses: statuses}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies, s.headers, s.paths = append(s.bodies, string(b)), append(s.headers, r.Header), append(s.paths,
			r.URL.Path)
		if len(s.statuses) > 0 {
			w.WriteHeader(s.statuses[0])
			s.statuses = s.statuses[1:]
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// running runs a notifier, and returns what has been committed and how to stop it.
func running(t *testing.T, cfg Options, s *topic, done int64) (*Counts, func() int64, func()) {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var mu sync.Mutex
	committed := int64(-1)
	counts := &Counts{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- New(cfg, counts).Run(ctx, s.open, done, func(_ context.Context, next int64) error {
			mu.Lock()
			defer mu.Unlock()
			if next <= committed {
				t.Errorf("offset %d committed after %d", next, committed)
			}
			committed = next
			return nil
		})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return counts, func() int64 { mu.Lock(); defer mu.Unlock(); return committed }, stop
}

// outcomes are those of all receivers of a kind.
type outcomes struct{ OK, Failed, GivenUp int64 }

func outcomesOf(c *Counts, to string) (sum outcomes) {
	for _, r := range c.Receivers() {
		if o := c.Of(r); r.To == to {
			sum.OK, sum.Failed, sum.GivenUp = sum.OK+o.OK.Load(), sum.Failed+o.Failed.Load(),
				sum.GivenUp+o.GivenUp.Load()
		}
	}
	return sum
}

// TestAlertmanagerIsToldTheState: nothing before the topic's end; then what fires and what resolved of late, with a
// past end for the resolved one and a future end for the other, and again after each change.
func TestAlertmanagerIsToldTheState(t *testing.T) {
	am, topic := newServer(t), newTopic()
	topic.alert(t, "a", firing)
	topic.alert(t, "b", firing)
	topic.alert(t, "b", resolved)
	topic.alert(t, "c", "pending")
	counts, committed, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL + "/"},
		ExternalURL: "https://page.example/", Labels: []string{"team=x"}}, History: true}, topic, 0)
	eventually.True(t, "all read", func() bool { return committed() == 4 })
	if n := am.requests(); n != 0 {
		t.Fatalf("%d requests before the topic's end", n)
	}
	topic.idle()
	eventually.True(t, "notified", func() bool { return outcomesOf(counts, "alertmanager").OK == 1 })
	var got []postable
	if err := json.Unmarshal([]byte(am.bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	if am.paths[0] != "/api/v2/alerts" || len(got) != 2 || got[0].Labels["alertname"] != "a" ||
		got[1].Labels["alertname"] != "b" {
		t.Fatalf("%s: %+v", am.paths[0], got)
	}
	for i, want := range []string{"critical", "m", "1", "region=eu", "x"} {
		if l := got[0].Labels; l[[]string{"severity", "model", "version", "slice", "team"}[i]] != want {
			t.Errorf("labels %v, want %s among them", l, want)
		}
	}
	if end, err := time.Parse(time.RFC3339Nano, got[0].EndsAt); err != nil ||
		time.Until(end) < 3*setting.Default[Config]().Resend {
		t.Errorf("a firing alert ends at %s (%v)", got[0].EndsAt, err)
	}
	if got[1].EndsAt != "2026-01-01T00:10:00Z" || got[1].StartsAt != "2026-01-01T00:00:00Z" {
		t.Errorf("the resolved one is from %s to %s", got[1].StartsAt, got[1].EndsAt)
	}
	want := "https://page.example/?at=2026-01-01T00%3A10%3A00Z&model=m&slice=region%3Deu&version=1&window=last-5000"
	if got[0].GeneratorURL != want {
		t.Errorf("link %s, want %s", got[0].GeneratorURL, want)
	}
	want = "https://page.example/api/v1/models/m/history?kind=alert" +
		"&since=2026-01-01T00%3A10%3A00Z&until=2026-01-01T00%3A10%3A00.000000001Z&version=1"
	if got[0].Annotations["evidence"] != want {
		t.Errorf("evidence %s, want %s", got[0].Annotations["evidence"], want)
	}
	topic.alert(t, "a", resolved)
	eventually.True(t, "notified of the change", func() bool { return outcomesOf(counts, "alertmanager").OK == 2 })
	if !strings.Contains(am.bodies[1], "a resolved") {
		t.Errorf("the second request: %s", am.bodies[1])
	}
	topic.add("m/1/region=eu/a", nil) // a tombstone
	topic.alert(t, "d", firing)
	eventually.True(t, "notified of the next", func() bool { return outcomesOf(counts, "alertmanager").OK == 3 })
	if strings.Contains(am.bodies[2], "a resolved") {
		t.Errorf("after its tombstone: %s", am.bodies[2])
	}
}

// TestNoECEIsNotZero: an alert of which no ECE was computed, as of label coverage, has none for Alertmanager.
func TestNoECEIsNotZero(t *testing.T) {
	zero := 0.
	for _, c := range []struct {
		alert record.Alert
		want  string
	}{
		{record.Alert{Measure: "coverage"}, ""},
		{record.Alert{Measure: "ece", ECE: .1}, "0.1"},
		{record.Alert{Measure: "ece", ECELo: &zero}, "0"},
	} {
		got := (&Options{}).asPostable(&c.alert, time.Now()).Annotations
		if _, null := got["ece_null"]; got["ece"] != c.want || null != (c.want != "") {
			t.Errorf("%s: %v, want ece %q", c.alert.Measure, got, c.want)
		}
	}
}

// TestInhibitedIsNotNotified: nobody is notified of an inhibited alert; one that was notified before is over for
// Alertmanager and for webhooks, once, but for those that ask for the change itself.
func TestInhibitedIsNotNotified(t *testing.T) {
	am, hook, all, chat, topic := newServer(t), newServer(t), newServer(t), newServer(t), newTopic()
	inhibited := func(rule, state, by string) {
		b, err := json.Marshal(record.Alert{
			Schema:      1,
			Model:       "m",
			Version:     "1",
			Rule:        rule,
			State:       state,
			Since:       moment("2026-01-01T00:00:00Z"),
			At:          moment("2026-01-01T00:20:00Z"),
			InhibitedBy: by,
			Diagram:     "/?model=m&at=1",
		})
		if err != nil {
			t.Fatal(err)
		}
		topic.add("m/1/region=eu/"+rule, b)
	}
	inhibited("root", firing, "")
	inhibited("never", firing, "m/1//root")
	inhibited("was", firing, "")
	inhibited("was", firing, "calibrator 1")
	inhibited("over", firing, "m/1//root")
	inhibited("over", resolved, "m/1//root")
	topic.idle()
	_, committed, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL},
		ExternalURL: "https://page.example/", Resend: time.Hour}, Hooks: []Webhook{{URL: hook.URL}, {URL: all.URL,
		States: []string{"firing", "inhibited"}}, {URL: chat.URL, Format: formatSlack}}}, topic, 0)
	eventually.True(t, "all read and notified", func() bool { return committed() == 6 && am.requests() > 0 })
	var got []postable
	if err := json.Unmarshal([]byte(am.bodies[len(am.bodies)-1]), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Labels["alertname"] != "root" || got[1].Labels["alertname"] != "was" ||
		got[1].EndsAt != "2026-01-01T00:20:00Z" {
		t.Errorf("Alertmanager got %+v, want root firing, was ended", got)
	}
	if got[0].GeneratorURL != "https://page.example/?model=m&at=1" {
		t.Errorf("link %s", got[0].GeneratorURL)
	}
	if n, m := hook.requests(), all.requests(); n != 3 || m != 6 {
		t.Fatalf("%d and %d deliveries, want 3 and 6", n, m)
	}
	var e event
	if err := json.Unmarshal([]byte(hook.bodies[2]), &e); err != nil || e.Type != "alert.resolved" ||
		e.Data.Rule != "was" || e.Data.State != resolved || e.Data.InhibitedBy != "calibrator 1" {
		t.Errorf("the one that was notified as firing and is inhibited now: %s, "+
			"want it resolved for a webhook that does not ask for inhibited", hook.bodies[2])
	}
	if n := chat.requests(); n != 3 || !strings.Contains(chat.bodies[2], "INHIBITED: was on m 1") ||
		!strings.Contains(chat.bodies[2], "not resolved, but calibrator 1 is in force against it") {
		t.Errorf("a chat got %q, want the third headed INHIBITED: its fault is not over", chat.bodies)
	}
	if err := json.Unmarshal([]byte(all.bodies[3]), &e); err != nil || e.Type != "alert.inhibited" ||
		e.Data.State != firing {
		t.Errorf("the same for one that asks: %s", all.bodies[3])
	}
	if err := json.Unmarshal([]byte(all.bodies[5]), &e); err != nil || e.Type != "alert.resolved" ||
		e.Data.Rule != "over" || e.Data.InhibitedBy != "m/1//root" {
		t.Errorf("the end of an inhibited one for one that asks: %s", all.bodies[5])
	}
	inhibited("was", resolved, "") // notified that it is over already
	inhibited("was", firing, "")   // and a new episode
	eventually.True(t, "notified of the next", func() bool { return committed() == 8 })
	if n, m := hook.requests(), all.requests(); n != 4 || m != 7 {
		t.Errorf("%d and %d deliveries, want 4 and 7", n, m)
	}
}

// TestAlertmanagerAway: the state is sent again, soon, to the one that did not take it.
func TestAlertmanagerAway(t *testing.T) {
	am, topic := newServer(t, http.StatusServiceUnavailable), newTopic()
	topic.alert(t, "a", firing)
	topic.idle()
	counts, _, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL}, Resend: 20 * time.Millisecond}},
		topic, 0)
	eventually.True(t, "notified again", func() bool {
		return outcomesOf(counts, "alertmanager").Failed == 1 &&
			outcomesOf(counts, "alertmanager").OK >= 2
	})
}

// TestWebhook: every change once, in order, signed, from the committed offset on; a failure is tried again with the
// same id, a refusal is not.
func TestWebhook(t *testing.T) {
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123"))
	secret, err := ParseSecret(key)
	if err != nil {
		t.Fatal(err)
	}
	hook, topic := newServer(t, http.StatusInternalServerError, http.StatusOK, http.StatusGone), newTopic()
	topic.alert(t, "old", firing)
	topic.alert(t, "a", firing)
	topic.add("x", []byte("{")) // no alert
	topic.alert(t, "a", "pending")
	topic.alert(t, "b", firing)
	topic.alert(t, "old", firing) // again: no news
	topic.alert(t, "b", firing)
	topic.alert(t, "a", resolved)
	counts, committed, _ := running(t, Options{Hooks: []Webhook{{URL: hook.URL + "/hook", Secret: secret}}}, topic, 1)
	eventually.True(t, "all read", func() bool { return committed() == 8 })
	var ids []string
	for i, h := range hook.headers {
		ids = append(ids, h.Get("webhook-id"))
		var seconds int64
		if _, err := fmt.Sscan(h.Get("webhook-timestamp"), &seconds); err != nil {
			t.Fatal(err)
		}
		if want := Sign(secret, ids[i], time.Unix(seconds, 0),
			[]byte(hook.bodies[i])); h.Get("webhook-signature") != want {
			t.Errorf("request %d is signed %q, want %q", i, h.Get("webhook-signature"), want)
		}
	}
	for i, want := range []string{"alerts-2-1-", "alerts-2-1-", "alerts-2-4-", "alerts-2-7-"} {
		if i >= len(ids) || !strings.HasPrefix(ids[i], want) || i == 1 && ids[1] != ids[0] {
			t.Errorf("ids %s, want %s… as number %d, the same for each try", ids, want, i)
		}
	}
	if n := outcomesOf(counts, "webhook").Failed; n != 1 {
		t.Errorf("%d failed, want 1, the one that was tried again", n)
	}
	hooked, bad := outcomesOf(counts, "webhook"), counts.Unreadable.Load()
	if hooked.OK != 2 || hooked.GivenUp != 1 || bad != 1 {
		t.Errorf("%d sent, %d given up, %d unreadable, want 2, 1, 1", hooked.OK, hooked.GivenUp, bad)
	}
	var e event
	if err := json.Unmarshal([]byte(hook.bodies[3]), &e); err != nil || e.Type != "alert.resolved" ||
		e.Data.Rule != "a" {
		t.Errorf("the last body %s (%v)", hook.bodies[3], err)
	}
}

// TestWebhookIDs: a topic that was made again begins with offsets that the old one had; other alerts there are news.
func TestWebhookIDs(t *testing.T) {
	hook := newServer(t)
	for _, rule := range []string{"a", "b"} {
		topic := newTopic()
		topic.alert(t, rule, firing)
		_, committed, stop := running(t, Options{Hooks: []Webhook{{URL: hook.URL}}}, topic, 0)
		eventually.True(t, "taken", func() bool { return committed() == 1 })
		stop()
	}
	if a, b := hook.headers[0].Get("webhook-id"), hook.headers[1].Get("webhook-id"); a == b {
		t.Errorf("both have id %s", a)
	}
}

// TestNotDeliveredIsNotCommitted: a stop while a webhook is away leaves its record for the next run.
func TestNotDeliveredIsNotCommitted(t *testing.T) {
	hook, topic := newServer(t, 500, 500, 500, 500, 500, 500, 500, 500), newTopic()
	topic.alert(t, "a", firing)
	_, committed, stop := running(t, Options{Hooks: []Webhook{{URL: hook.URL}}}, topic, 0)
	eventually.True(t, "tried", func() bool { return hook.requests() > 0 })
	stop()
	if committed() != -1 {
		t.Errorf("offset %d is committed", committed())
	}
}

func TestEviction(t *testing.T) {
	n := newKnown(2, &Counts{}, slog.New(slog.DiscardHandler))
	topic := newTopic()
	for _, a := range [][2]string{{"a", resolved}, {"b", firing}, {"c", firing}, {"d", firing}} {
		topic.alert(t, a[0], a[1])
		n.take(&topic.records[len(topic.records)-1])
	}
	if len(n.alerts) != 2 || n.alerts["m/1/region=eu/c"] == nil || n.alerts["m/1/region=eu/d"] == nil ||
		n.counts.Evicted.Load() != 2 {
		t.Errorf("kept %v, %d evicted; want c and d, 2", n.alerts, n.counts.Evicted.Load())
	}
}

// TestSign holds Sign against the example of the Standard Webhooks specification.
func TestSign(t *testing.T) {
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseSecretRefuses(t *testing.T) {
	for _, s := range []string{"", "short", "whsec_!!", "whsec_c2hvcnQ="} {
		if b, err := ParseSecret(s); err == nil {
			t.Errorf("%q gave %d bytes, want an error", s, len(b))
		} else if strings.Contains(err.Error(), "short") {
			t.Errorf("the error %q shows the secret", err)
		}
	}
}

// TestVersionWithoutPredictions: the alert of a version that has no predictions any more is over for all that were
// notified of it. They are told why, and that it fires again when it does.
func TestVersionWithoutPredictions(t *testing.T) {
	am, hook, topic := newServer(t), newServer(t), newTopic()
	put := func(by string) {
		b, err := json.Marshal(record.Alert{Schema: 1, Model: "m", Version: "1", Rule: "a", State: firing,
			Since: moment("2026-01-01T00:00:00Z"), At: moment("2026-01-01T00:20:00Z"), InhibitedBy: by,
			Message: "ECE 0.1"})
		if err != nil {
			t.Fatal(err)
		}
		topic.add("m/1//a", b)
	}
	put("")
	topic.idle()
	_, committed, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL}, Resend: time.Hour},
		Hooks: []Webhook{{URL: hook.URL}}}, topic, 0)
	eventually.True(t, "notified", func() bool { return committed() == 1 && am.requests() == 1 })
	put("no predictions since 2026-01-01T00:10:00Z")
	eventually.True(t, "notified of the end", func() bool { return committed() == 2 && am.requests() == 2 })
	put("")
	eventually.True(t, "notified again", func() bool { return committed() == 3 && am.requests() == 3 })
	const why = "no predictions since 2026-01-01T00:10:00Z, so there is nothing to judge; before: ECE 0.1"
	for i, want := range []struct {
		event, text string
		over        bool
	}{{"alert.firing", "ECE 0.1", false}, {"alert.resolved", why, true}, {"alert.firing", "ECE 0.1", false}} {
		var e event
		if err := json.Unmarshal([]byte(hook.bodies[i]), &e); err != nil || e.Type != want.event ||
			e.Data.Message != want.text {
			t.Errorf("webhook %d: %s, want %s, %q", i, hook.bodies[i], want.event, want.text)
		}
		var got []postable
		if err := json.Unmarshal([]byte(am.bodies[i]), &got); err != nil || len(got) != 1 {
			t.Fatalf("Alertmanager %d: %s", i, am.bodies[i])
		}
		if end := "2026-01-01T00:20:00Z"; (got[0].EndsAt == end) != want.over ||
			got[0].Annotations["summary"] != want.text {
			t.Errorf("Alertmanager %d: ends %s, %q, want over: %t, %q", i, got[0].EndsAt,
				got[0].Annotations["summary"], want.over, want.text)
		}
	}
}
