package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// postable is an alert as POST /api/v2/alerts of Alertmanager takes it.
type postable struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     string            `json:"startsAt"`
	EndsAt       string            `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// stale is how many times the interval of sending an alert lives in Alertmanager without being sent again, as in
// Prometheus: one that nobody speaks of any more resolves by itself.
const stale = 4

// asPostable makes of an alert what Alertmanager gets at now. Event time stands in for its clock, but nothing starts
// or ends later than now: a future end would keep a resolved alert firing.
func (c *Options) asPostable(a *record.Alert, now time.Time) postable {
	start, end, summary := earlier(a.Since, now), now.Add(stale*c.Resend), a.Message
	if stateOf(a) != firing {
		end = earlier(a.At, now)
	}
	if stateOf(a) == inhibited {
		summary = closing(a)
	}
	labels := map[string]string{"alertname": a.Rule, "severity": a.Severity, "model": a.Model, "version": a.Version}
	if a.Slice != "" {
		labels["slice"] = a.Slice
	}
	for _, l := range c.Labels {
		k, v, _ := strings.Cut(l, "=")
		labels[k] = v
	}
	annotations := map[string]string{"summary": summary, "since": a.Since.String(), "at": a.At.String(),
		"signal": a.Signal,
		"window": a.Window,
		"value":  number(a.Value), "threshold": number(a.Threshold),
		"rows": strconv.FormatInt(a.Rows, 10)}
	if a.ECELo != nil || a.ECE != 0 { // else nobody computed it: people would read that the model is calibrated
		annotations["ece"], annotations["ece_null"] = number(a.ECE), number(a.ECENull)
	}
	if evidence := c.evidence(a); evidence != "" {
		annotations["evidence"] = evidence
	}
	if c.RunbookURL != "" {
		annotations["runbook_url"] = c.RunbookURL
	}
	return postable{
		Labels:       labels,
		Annotations:  annotations,
		StartsAt:     start.UTC().Format(time.RFC3339Nano),
		EndsAt:       end.UTC().Format(time.RFC3339Nano),
		GeneratorURL: c.linkTo(a),
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// earlier is the time of an alert, or now where that is earlier or there is none.
func earlier(at record.Time, now time.Time) time.Time {
	if at.IsZero() || at.Std().After(now) {
		return now
	}
	return at.Std()
}

// linkTo is the page at the alert's window and time: the reliability diagram that it was raised on.
func (c *Options) linkTo(a *record.Alert) string {
	if c.ExternalURL == "" {
		return ""
	}
	if a.Diagram != "" {
		return strings.TrimSuffix(c.ExternalURL, "/") + a.Diagram
	}
	q := url.Values{"model": {a.Model}, "version": {a.Version}, "slice": {a.Slice}, "window": {a.Window},
		"at": {a.At.String()}}
	return strings.TrimSuffix(c.ExternalURL, "/") + "/?" + q.Encode()
}

// evidence is the alert's record in the history: what it rests on, for as long as the history is kept.
func (c *Options) evidence(a *record.Alert) string {
	if c.ExternalURL == "" || !c.History || a.At.IsZero() {
		return ""
	}
	q := url.Values{"version": {a.Version}, "kind": {record.DecisionAlert}, "since": {a.At.String()},
		"until": {record.At(a.At.UnixNano() + 1).String()}}
	return strings.TrimSuffix(c.ExternalURL, "/") + "/api/v1/models/" + url.PathEscape(a.Model) + "/history?" +
		q.Encode()
}

// maxBatch bounds a request; Alertmanager's own limit is memory.
const maxBatch = 1000

// send sends alerts to one Alertmanager. A refused batch keeps no other from being sent.
func (c *Options) send(ctx context.Context, base string, alerts []postable) error {
	var refused error
	for batch := range slices.Chunk(alerts, maxBatch) {
		body, err := json.Marshal(batch)
		if err != nil {
			return err
		}
		err = c.post(ctx, strings.TrimSuffix(base, "/")+"/api/v2/alerts", body, nil)
		var s *statusError
		switch {
		case errors.As(err, &s) && s.final():
			refused = errors.Join(refused, err)
		case err != nil:
			return err
		}
	}
	return refused
}

// statusError is an answer that is not 2xx.
type statusError struct {
	status int
	body   string
	after  time.Duration // for how long it asks to be left alone; 0: it does not say
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// final reports that sending the same again cannot help: the receiver does not want this body, or any. What else it
// says, such as that there is nothing at the path or that it lets nobody in, may be mended there meanwhile.
func (e *statusError) final() bool {
	switch e.status {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// post sends body and reads a bounded answer. The address does not come into the error: it may hold a secret.
func (c *Options) post(ctx context.Context, address string, body []byte, header http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "plumbline")
	resp, err := c.Client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	const enough = 512
	text, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	if resp.StatusCode/100 == 3 {
		to := "?"
		if u, err := resp.Location(); err == nil {
			to = u.Host
		}
		return &statusError{status: resp.StatusCode,
			body: fmt.Sprintf("a redirection, to host %s, is not followed: set the address that takes alerts", to)}
	}
	if resp.StatusCode/100 != 2 {
		return &statusError{resp.StatusCode, strings.TrimSpace(string(text)), retryAfter(resp.Header)}
	}
	return nil
}

// retryAfter is the Retry-After of an answer, seconds or a date; 0 where it has none.
func retryAfter(h http.Header) time.Duration {
	const longest = time.Hour
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(at), longest))
	}
	return 0
}
