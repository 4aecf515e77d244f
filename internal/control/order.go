package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Process is a running process, asked as one user.
type Process struct {
	Client *Client
	Base   string // its address
}

// Ask sends a request to the process.
func (p Process) Ask(ctx context.Context, r Request, answer any) error {
	r.Base = p.Base
	return p.Client.Do(ctx, r, answer)
}

// Order is a person's order about the calibrators of a model.
type Order struct {
	Action, Model, Version string // version "" = the model's only one
	Revision, Classes      int    // 0 = none
	By, Why                string
	Calibrator             []byte // JSON, of what is to be published
}

// OrderAnswer says that an order is on its way; the list of calibrators shows what came of it.
type OrderAnswer struct {
	ID      string `json:"id"`
	Action  string `json:"action"`
	Model   string `json:"model"`
	Version string `json:"version"`
	By      string `json:"by"`
	Why     string `json:"why"`
}

// Decision is a decision of a model task, with the bytes that the process gave.
type Decision struct {
	record.Calibrator
	JSON json.RawMessage
}

// Send sends an order.
func (p Process) Send(ctx context.Context, o Order) (a OrderAnswer, err error) {
	q := url.Values{"why": {o.Why}, "by": {o.By}}
	if o.Version != "" {
		q.Set("version", o.Version)
	}
	if o.Revision != 0 {
		q.Set("revision", strconv.Itoa(o.Revision))
	}
	if o.Classes != 0 {
		q.Set("classes", strconv.Itoa(o.Classes))
	}
	err = p.Ask(ctx, Request{Method: http.MethodPost, Path: "models/" + url.PathEscape(o.Model) + "/calibrators/" +
		o.Action, Query: q, Body: o.Calibrator}, &a)
	return a, err
}

// Await sends an order and waits until the model task has decided about it. A refusal is an error.
func (p Process) Await(ctx context.Context, o Order, most time.Duration) (Decision, error) {
	const pause = 200 * time.Millisecond
	a, err := p.Send(ctx, o)
	if err != nil {
		return Decision{}, err
	}
	order := fmt.Sprintf("%s of %s/%s (order %s)", a.Action, a.Model, a.Version, a.ID)
	for deadline := time.Now().Add(most); ; {
		records, err := p.decisions(ctx, a.Model)
		if err != nil {
			return Decision{}, fmt.Errorf("%s is on its way, and nobody says what came of it: %w", order, err)
		}
		for _, r := range records {
			d := Decision{JSON: r}
			if json.Unmarshal(r, &d.Calibrator) != nil || d.Order != a.ID {
				continue
			}
			if d.Refused() {
				return d, fmt.Errorf("%s: %s", order, d.Outcome)
			}
			return d, nil
		}
		if time.Now().After(deadline) {
			return Decision{}, fmt.Errorf("%s is on its way, and no decision about it has come within %s", order, most)
		}
		time.Sleep(pause)
	}
}

// decisions are the newest decisions about a model's calibrators, oldest first, as records.
func (p Process) decisions(ctx context.Context, model string) ([]json.RawMessage, error) {
	var a struct {
		Calibrators []json.RawMessage `json:"calibrators"`
	}
	q := url.Values{"model": {model}, "limit": {"200"}}
	err := p.Ask(ctx, Request{Method: http.MethodGet, Path: "calibrators", Query: q}, &a)
	return a.Calibrators, err
}
