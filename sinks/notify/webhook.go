package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Webhook gets every change of an alert's state that it asks for.
type Webhook struct {
	URL string
	// Secret signs, "" does not: see ParseSecret.
	Secret []byte
	// States are those of the alerts that are sent; nil is firing and resolved. Where inhibited is not among them, an
	// alert that was sent as firing and that another alert stands for from then on is sent as resolved, with
	// InhibitedBy: what was opened is closed. A message for people is headed INHIBITED then.
	States []string
	Format string // "" is standard
}

// event is the body of a webhook's request.
type event struct {
	Type      string        `json:"type"` // alert.firing, alert.resolved, alert.pending
	Timestamp record.Time   `json:"timestamp"`
	Link      string        `json:"link,omitempty"`     // the page at the alert's window and moment
	Evidence  string        `json:"evidence,omitempty"` // the alert's record, with its evidence, in the history
	Data      *record.Alert `json:"data"`
}

// ParseSecret reads a secret: "whsec_" and base64, as Standard Webhooks has it, or at least 16 bytes of any other text.
func ParseSecret(text string) ([]byte, error) {
	const least = 16
	if b64, ok := strings.CutPrefix(text, "whsec_"); ok {
		key, err := base64.StdEncoding.DecodeString(b64)
		if err != nil {
			return nil, errors.New("after whsec_: not base64")
		}
		if len(key) < least {
			return nil, fmt.Errorf("%d bytes, allowed are %d and more", len(key), least)
		}
		return key, nil
	}
	if len(text) < least {
		return nil, fmt.Errorf("%d bytes, allowed are %d and more", len(text), least)
	}
	return []byte(text), nil
}

// Sign is the webhook-signature of Standard Webhooks 1.0.0: "v1," and the base64 of
// HMAC-SHA256(secret, id "." seconds "." body).
func Sign(secret []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (w *Webhook) wants(state string) bool {
	if w.States == nil {
		return state == firing || state == resolved
	}
	return slices.Contains(w.States, state)
}

// seenBy is a change as a webhook is notified of it; nil where it is not.
func (c *change) seenBy(w *Webhook) *record.Alert {
	switch {
	case c == nil:
		return nil
	case w.wants(inhibited) || !c.over && !c.again:
		if !w.wants(stateOf(c.alert)) {
			return nil
		}
		return c.alert
	case c.again || !w.wants(resolved):
		return nil
	}
	a := *c.alert
	a.Message = closing(c.alert)
	if w.Format != formatSlack && w.Format != formatTeams { // people would read that the fault is over
		a.State = resolved
	}
	return &a
}

// closing says why an inhibited alert is over for those who were notified of it.
func closing(a *record.Alert) string {
	if strings.HasPrefix(a.InhibitedBy, record.NoPredictions) {
		return fmt.Sprintf("%s, so there is nothing to judge; before: %s", a.InhibitedBy, a.Message)
	}
	if strings.HasPrefix(a.InhibitedBy, "calibrator ") {
		return fmt.Sprintf("not resolved, but %s is in force against it: %s", a.InhibitedBy, a.Message)
	}
	return fmt.Sprintf("not resolved, but inhibited by %s: %s", a.InhibitedBy, a.Message)
}

// delivery is a change on its way to a webhook.
type delivery struct {
	webhook  *Webhook
	id       string // the same for every attempt
	alert    *record.Alert
	patience time.Duration // how long it is tried again; 0 = once
	failed   *atomic.Int64 // attempts that another follows
	notYet   *time.Time    // before this the webhook asked to be left alone
}

// body is what every attempt sends. The end of an inhibited alert is resolved, also for those that ask for inhibited
// ones only: they close what they opened.
func (c *Options) body(format string, a *record.Alert) ([]byte, error) {
	kind := stateOf(a)
	if a.State == resolved {
		kind = resolved
	}
	switch format {
	case formatSlack:
		return c.slack(kind, a)
	case formatTeams:
		return c.teams(kind, a)
	}
	return json.Marshal(event{
		Type:      "alert." + kind,
		Timestamp: a.At,
		Link:      c.linkTo(a),
		Evidence:  c.evidence(a),
		Data:      a,
	})
}

// deliver sends one change until it is taken, refused for good, or its patience is over; it reports whether the change
// was taken. A webhook that says when to come again is asked then, once beyond the patience, too. The error is ctx's
// only.
func (n *Notifier) deliver(ctx context.Context, d delivery) (taken bool, err error) {
	c, w, id, a := &n.cfg, d.webhook, d.id, d.alert
	body, err := c.body(w.Format, a)
	if err != nil {
		c.Log.Error("alert cannot be sent", "webhook", host(w.URL), "err", err)
		return false, nil
	}
	if backoff.Sleep(ctx, time.Until(*d.notYet)); ctx.Err() != nil {
		return false, ctx.Err()
	}
	begin, again, asked := time.Now(), backoff.New(firstPause, lastPause), false
	for {
		err := c.attempt(ctx, w, id, body)
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		var s *statusError
		pause, left := again.Next(), d.patience-time.Since(begin)
		over := pause > left
		if errors.As(err, &s) && s.after > 0 {
			*d.notYet = time.Now().Add(s.after)
			pause = max(pause, s.after)
			over = asked && pause > left
			asked = asked || pause > left
		}
		if s != nil && s.final() || over {
			c.Log.Error("webhook given up",
				"webhook", host(w.URL), "id", id, "rule", a.Rule, "state", a.State, "err", err)
			return false, nil
		}
		d.failed.Add(1)
		c.Log.Warn("webhook failed, trying again", "webhook", host(w.URL), "id", id, "in", pause,
			faultlog.Err(err))
		if backoff.Sleep(ctx, pause); ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// attempt sends a webhook one body, once. A new kind of receiver is a case here, a key of Config with what it needs in
// Webhook, and a line in docs/http.md: repeats and offsets stay the same. A *statusError may be final, all
// else is tried again. Counts and logs name the receiver by host.
func (c *Options) attempt(ctx context.Context, w *Webhook, id string, body []byte) error {
	at := time.Now()
	h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}}
	if len(w.Secret) > 0 {
		h.Set("Webhook-Signature", Sign(w.Secret, id, at, body))
	}
	return c.post(ctx, w.URL, body, h)
}

// host is what a log may show of an address: paths, queries and users may be secrets.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	return u.Host
}

// withoutURL takes the address out of an error of net/http.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

const (
	firstPause = time.Second
	lastPause  = time.Minute
)
