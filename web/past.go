package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/web/reply"
)

// PastQuery asks for what was decided about a model.
type PastQuery struct {
	Model, Version string   // version "" = any
	Kinds          []string // none = any
	Since, Until   *int64   // Unix nanoseconds, until excluded; nil = no bound
	Limit          int
	Cursor         string // "" = the newest
	Records        bool   // with the records themselves
}

// Past is the history of what was decided.
type Past interface {
	// Past returns a page of entries, newest first, encoded as JSON. An error that wraps ErrQuery is the question's
	// fault.
	Past(ctx context.Context, q PastQuery) (any, error)
}

// ErrQuery says that a question cannot be answered as it was put.
var ErrQuery = errors.New("history")

// pastPath is where the history of a model is.
const pastPath = calibratePrefix + "{model}/history"

// pastQuery reads the parameters of a request.
func pastQuery(r *http.Request) (PastQuery, error) {
	p := parse(r.URL.RawQuery, "version", "kind", "since", "until", "limit", "cursor", "detail")
	q := PastQuery{
		Model:   r.PathValue("model"),
		Version: p.text("version"),
		Limit:   p.limit(defaultDecisions),
		Cursor:  p.text("cursor"),
		Records: p.oneOf("detail", "full", "none") == "full",
	}
	if t, ok := p.time("since"); ok {
		q.Since = &t
	}
	if t, ok := p.time("until"); ok {
		q.Until = &t
	}
	if kinds := p.text("kind"); kinds != "" {
		q.Kinds = strings.Split(kinds, ",")
	}
	for _, k := range q.Kinds {
		if !slices.Contains(record.DecisionKinds, k) {
			p.fail("kind %q: must be some of %s, with commas", k, strings.Join(record.DecisionKinds, ", "))
		}
	}
	return q, p.err
}

// past answers GET /api/v1/models/MODEL/history.
func (a *api) past(w http.ResponseWriter, r *http.Request) {
	if !reply.Allows(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	if a.Past == nil {
		reply.Error(w, http.StatusNotFound, "this process keeps no history: history.store is off")
		return
	}
	q, err := pastQuery(r)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set(eventIDHeader, eventID(a.History.Position())) // before the database is read
	answer, err := a.Past.Past(r.Context(), q)
	switch {
	case errors.Is(err, ErrQuery):
		reply.Error(w, http.StatusBadRequest, err.Error())
	case err != nil:
		a.Log.Error("history", "model", q.Model, "err", err)
		w.Header().Set("Retry-After", "10")
		reply.Error(w, http.StatusServiceUnavailable, "the database of the history does not answer; the log says why")
	default:
		a.reply(w, answer)
	}
}
