package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/plumbline/plumbline/web/reply"
)

// HeadOrder is what a person wants of a head, or of the job that trains it.
type HeadOrder struct {
	Action  string // pin | rollback | auto | cancel
	ID      string // model/version+headN
	By, Why string
}

// Heads tells of the heads that were trained, and takes what people decide about them.
type Heads interface {
	// Heads is what is known of all of them, encoded as JSON.
	Heads() any
	// HeadOrder carries an order out and returns it as it was written. An error that wraps ErrOrder is the order's
	// fault.
	HeadOrder(ctx context.Context, o HeadOrder) (any, error)
}

const headsPath = controlPrefix + "heads"

var headActions = []string{"pin", "rollback", "auto", "cancel"}

func isHeadOrder(path string) bool { return strings.HasPrefix(path, headsPath+"/") }

// heads answers GET /api/v1/heads.
func (a *api) heads(w http.ResponseWriter, _ *http.Request) {
	if a.Heads == nil {
		reply.Error(w, http.StatusNotFound, "this process follows no heads: set heads.shadow or trigger.enabled")
		return
	}
	a.reply(w, a.Heads.Heads())
}

// headOrder answers POST /api/v1/heads/ACTION?id=ID&why=WHY, under the same conditions as a pause.
func (a *api) headOrder(w http.ResponseWriter, r *http.Request) {
	p, ok := a.control(w, r, "id", "by", "why")
	if !ok {
		return
	}
	o := HeadOrder{Action: r.PathValue("action"), ID: p.required("id"), By: p.text("by"), Why: p.text("why")}
	known := false
	for _, action := range headActions {
		known = known || action == o.Action
	}
	switch {
	case p.err != nil:
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	case !known:
		reply.Error(w, http.StatusNotFound, "no such action: "+o.Action+"; there are "+strings.Join(headActions, ", "))
		return
	case a.Heads == nil:
		reply.Error(w, http.StatusNotFound, "this process follows no heads: set heads.shadow or trigger.enabled")
		return
	}
	if o.By, ok = a.person(w, r, o.By); !ok {
		return
	}
	a.Log.Info("head order", "action", o.Action, "id", o.ID, "by", o.By, "why", o.Why, "from", r.RemoteAddr)
	answer, err := a.Heads.HeadOrder(r.Context(), o)
	a.ordered(w, "head order", answer, err)
}
