package web

import (
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/plumbline/plumbline/web/reply"
)

// Control is what POST requests may do to the process.
type Control interface {
	// Pause stops reading, Resume goes on; both return the state, which is encoded as JSON.
	Pause(by, why string) any
	Resume() any
}

// maxReason bounds the texts of a pause in bytes.
const maxReason = 200

const controlPrefix = "/api/v1/"

// isControl reports whether a path changes something.
func isControl(path string) bool {
	return path == controlPrefix+"pause" || path == controlPrefix+"resume" || isHeadOrder(path)
}

// pause and resume answer POST only; a page of another site cannot make a browser send them.
func (a *api) pause(w http.ResponseWriter, r *http.Request) {
	p, ok := a.control(w, r, "by", "why")
	if !ok {
		return
	}
	by, ok := a.person(w, r, p.text("by"))
	if !ok {
		return
	}
	a.Log.Info("pause", "by", by, "why", p.text("why"), "from", r.RemoteAddr)
	a.reply(w, a.Control.Pause(by, p.text("why")))
}

func (a *api) resume(w http.ResponseWriter, r *http.Request) {
	if _, ok := a.control(w, r); !ok {
		return
	}
	if by, ok := a.person(w, r, ""); ok {
		a.Log.Info("resume", "by", by, "from", r.RemoteAddr)
		a.reply(w, a.Control.Resume())
	}
}

// control checks a request that changes something. One that takes a reason needs it: the history and the status show it
// to those who wonder.
func (a *api) control(w http.ResponseWriter, r *http.Request, known ...string) (*params, bool) {
	if !reply.Allows(w, r, http.MethodPost) {
		return nil, false
	}
	if a.Control == nil {
		reply.Error(w, http.StatusForbidden, "control over HTTP is off: set http.control: true")
		return nil, false
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		reply.Error(w, http.StatusForbidden, err.Error())
		return nil, false
	}
	p := parse(r.URL.RawQuery, known...)
	for _, name := range known {
		if v := p.text(name); len(v) > maxReason || !utf8.ValidString(v) {
			p.fail("%s: must be at most %d bytes of UTF-8", name, maxReason)
		}
	}
	if slices.Contains(known, "why") {
		p.required("why")
	}
	if p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return nil, false
	}
	return p, true
}
