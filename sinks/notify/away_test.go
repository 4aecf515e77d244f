package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestDeadWebhook: one that never answers is given up after a while, and from then on each change is tried once; what
// it has not been notified of is not committed before.
func TestDeadWebhook(t *testing.T) {
	testsize.Slow(t)
	hook, topic := newServer(t), newTopic()
	dead := httptest.NewServer(nil)
	dead.Close()
	counts, committed, _ := running(t, Options{Config: Config{RetryFor: 1500 * time.Millisecond},
		Hooks: []Webhook{{URL: dead.URL}, {URL: hook.URL, States: []string{firing}}}}, topic, 0)
	topic.idle()
	for i := range 20 {
		topic.alert(t, fmt.Sprint(i), firing)
	}
	eventually.True(t, "notified the other", func() bool { return hook.requests() == 20 })
	if committed() >= 20 {
		t.Error("all was committed before the dead webhook was given up")
	}
	eventually.True(t, "all given up", func() bool { return committed() == 20 })
	if sent, gone := outcomesOf(counts, "webhook").OK, outcomesOf(counts, "webhook").GivenUp; sent != 20 || gone != 20 {
		t.Errorf("%d delivered, %d given up, want 20 and 20", sent, gone)
	}
}

// TestHangingDelaysNobody: receivers that take requests and do not answer, and that are waited for long, keep neither
// another webhook nor another Alertmanager from what it is to get.
func TestHangingDelaysNobody(t *testing.T) {
	over := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); hang.Close() })
	am, hook, topic := newServer(t), newServer(t), newTopic()
	_, committed, stop := running(t, Options{Config: Config{Alertmanagers: []string{hang.URL, am.URL},
		Timeout: time.Hour, RetryFor: time.Hour, Resend: time.Hour},
		Hooks: []Webhook{{URL: hang.URL}, {URL: hook.URL}}}, topic, 0)
	topic.idle()
	const alerts = 2000 // a fault that all models share: more than anything should hold for one who does not answer
	for i := range alerts {
		topic.alert(t, fmt.Sprint(i), firing)
	}
	eventually.True(t, "notified the webhook that answers", func() bool { return hook.requests() == alerts })
	eventually.True(t, "notified the Alertmanager that answers", func() bool {
		am.mu.Lock()
		defer am.mu.Unlock()
		return len(am.bodies) > 0 && strings.Contains(am.bodies[len(am.bodies)-1], fmt.Sprint(alerts-1)+" firing")
	})
	stop()
	if committed() != -1 {
		t.Errorf("offset %d is committed, and a webhook has got nothing", committed())
	}
}

// TestRedirectionIsNoDelivery: a POST that is redirected comes as a GET without the alert, or to somebody else: it is
// not followed, and the alert is not taken.
func TestRedirectionIsNoDelivery(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		var log bytes.Buffer
		to, topic := newServer(t), newTopic()
		from := httptest.NewServer(http.RedirectHandler(to.URL+"/landed?token=secret", status))
		t.Cleanup(from.Close)
		topic.alert(t, "a", firing)
		counts, committed, stop := running(t, Options{Config: Config{RetryFor: time.Millisecond},
			Hooks: []Webhook{{URL: from.URL}}, Log: slog.New(slog.NewTextHandler(&log, nil))}, topic, 0)
		eventually.True(t, "given up", func() bool { return committed() == 1 })
		stop()
		if o := outcomesOf(counts, "webhook"); o.OK != 0 || o.GivenUp != 1 || to.requests() != 0 {
			t.Errorf("status %d: %d sent, %d given up, %d requests where it leads; want 0, 1, 0",
				status, o.OK, o.GivenUp, to.requests())
		}
		if text := log.String(); !strings.Contains(text, "host "+strings.TrimPrefix(to.URL, "http://")) ||
			strings.Contains(text, "secret") {
			t.Errorf("status %d: the log has %s; want the host that it leads to, and no more of the address", status,
				text)
		}
	}
}

// TestResolvedWhileAway: an Alertmanager that was away for longer than resolved alerts are kept for learns all the same
// that an alert which it knows as firing is over, once.
func TestResolvedWhileAway(t *testing.T) {
	const keep = time.Millisecond
	am, topic := newServer(t), newTopic()
	topic.alert(t, "a", firing)
	topic.idle()
	counts, committed, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL},
		Resend: 10 * time.Millisecond}, KeepResolved: keep}, topic, 0)
	eventually.True(t, "notified that it fires", func() bool { return outcomesOf(counts, "alertmanager").OK > 0 })
	am.mu.Lock()
	am.statuses = []int{503, 503, 503}
	am.mu.Unlock()
	topic.alert(t, "a", resolved)
	eventually.True(t, "read", func() bool { return committed() == 2 })
	eventually.True(t, "notified that it is over", func() bool {
		am.mu.Lock()
		defer am.mu.Unlock()
		return len(am.statuses) == 0 && strings.Contains(am.bodies[len(am.bodies)-1], "a resolved") &&
			outcomesOf(counts, "alertmanager").Failed == 3
	})
	n := am.requests()
	topic.alert(t, "b", firing)
	last := 0
	eventually.True(t, "notified of another ten times, ten milliseconds apart", func() bool {
		am.mu.Lock()
		defer am.mu.Unlock()
		another, over := 0, 0
		for _, b := range am.bodies[n:] {
			another += strings.Count(b, "b firing")
			over += strings.Count(b, "a resolved")
		}
		last = over
		return another >= 10
	})
	if last > 1 {
		t.Errorf("notified %d times more that it is over", last)
	}
}

// TestRefusedBatch: what an Alertmanager refuses of a thousand alerts keeps the others from nobody.
func TestRefusedBatch(t *testing.T) {
	am, topic := newServer(t, http.StatusBadRequest), newTopic()
	for i := range maxBatch + 1 {
		topic.alert(t, fmt.Sprintf("%04d", i), firing)
	}
	topic.idle()
	counts, _, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL}, Resend: time.Hour}}, topic, 0)
	eventually.True(t, "notified", func() bool { return outcomesOf(counts, "alertmanager").Failed == 1 })
	if am.requests() != 2 || !strings.Contains(am.bodies[1], fmt.Sprintf("%04d firing", maxBatch)) {
		t.Errorf("%d requests, want 2, the second with the last alert", am.requests())
	}
}

// TestCountsByReceiver: each receiver has outcomes of its own, from the start, by names that hold no secret.
func TestCountsByReceiver(t *testing.T) {
	am, topic := newServer(t), newTopic()
	host := strings.TrimPrefix(am.URL, "http://")
	counts, _, _ := running(t, Options{Config: Config{Alertmanagers: []string{am.URL}},
		Hooks: []Webhook{{URL: am.URL + "/a?key=secret"}, {URL: am.URL + "/b"}}}, topic, 0)
	want := []Receiver{{"alertmanager", host}, {"webhook", host}, {"webhook", host + "#2"}}
	eventually.True(t, "counted", func() bool { return slices.Equal(counts.Receivers(), want) })
}

// TestACommitThatFailsEndsNothing: the next one has what it would have had.
func TestACommitThatFailsEndsNothing(t *testing.T) {
	s, asked := newTopic(), make(chan int64)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	failures := 1
	go func() {
		ended <- New(Options{Log: slog.New(slog.DiscardHandler)}, &Counts{}).Run(ctx, s.open, 0,
			func(_ context.Context, next int64) error {
				asked <- next
				if failures--; failures >= 0 {
					return errors.New("the broker is away")
				}
				return nil
			})
	}()
	for want := int64(1); want <= 2; want++ {
		s.alert(t, "ece", "firing")
		select {
		case got := <-asked:
			if got != want {
				t.Errorf("commit of %d, want %d", got, want)
			}
		case err := <-ended:
			t.Fatalf("ended with %v", err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
