package web

import (
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
	"github.com/plumbline/plumbline/web/reply"
)

// Default values of the parameter limit.
const (
	defaultSnapshots = 360
	defaultDecisions = 100
	defaultVersions  = 500
)

type modelInfo struct {
	Model    string        `json:"model"`
	Versions []versionInfo `json:"versions"`
}

type versionInfo struct {
	Version string `json:"version"`
	// Classes is K, Settled whether it stands, Others the predictions of other K: of a version in the state of this
	// process.
	Classes int           `json:"classes,omitempty"`
	Settled bool          `json:"settled,omitempty"`
	Others  map[int]int64 `json:"others,omitempty"`

	// Moved: another process has the model now; what is listed here is of the time before.
	Moved   bool        `json:"moved,omitempty"`
	Pending int         `json:"alerts_pending"`
	Firing  int         `json:"alerts_firing"`
	Slices  []sliceInfo `json:"slices"`
}

type sliceInfo struct {
	Slice   string       `json:"slice"` // "" = all rows
	Windows []windowInfo `json:"windows"`
}

type windowInfo struct {
	Name      string      `json:"name"`
	Kind      string      `json:"kind"`
	Snapshots int         `json:"snapshots"`
	LatestAt  record.Time `json:"latest_at"`
}

// key finds the series that the parameters name. An absent version or window means the one with the newest snapshot;
// an absent slice means all rows. The second result is the HTTP status of the error.
func (a *api) key(p *params) (history.SnapshotKey, int, error) {
	k := history.SnapshotKey{Model: p.required("model"), Version: p.text("version"), Slice: p.text("slice"),
		Window: p.text("window")}
	if p.err != nil {
		return k, http.StatusBadRequest, p.err
	}
	var best *history.SeriesInfo
	for _, s := range a.History.Series() {
		if s.Model != k.Model || s.Slice != k.Slice || (k.Version != "" && s.Version != k.Version) ||
			(k.Window != "" && s.Window != k.Window) {
			continue
		}
		if best == nil || s.LatestAt.After(best.LatestAt) {
			best = &s
		}
	}
	if best == nil {
		return k, http.StatusNotFound, fmt.Errorf("no snapshots of model %q, version %q, slice %q, window %q", k.Model,
			k.Version, k.Slice, k.Window)
	}
	return best.SnapshotKey, http.StatusOK, nil
}

// snapshots answers with a series, oldest first.
func (a *api) snapshots(w http.ResponseWriter, r *http.Request) {
	p := parse(r.URL.RawQuery, "model", "version", "slice", "window", "limit", "detail")
	limit, detail := p.limit(defaultSnapshots), p.oneOf("detail", "full", "none")
	k, code, err := a.key(p)
	if err != nil {
		reply.Error(w, code, err.Error())
		return
	}
	list, _ := a.History.Snapshots(k, limit)
	if list == nil {
		list = []record.Snapshot{} // the key was evicted since
	}
	if detail == "none" {
		for i := range list {
			list[i] = *history.Slim(&list[i])
		}
	}
	a.reply(w, map[string]any{"snapshots": list})
}

// latest answers with the newest snapshot of a series, or the newest that is not after the parameter at.
func (a *api) latest(w http.ResponseWriter, r *http.Request) {
	p := parse(r.URL.RawQuery, "model", "version", "slice", "window", "at")
	at, past := p.time("at")
	k, code, err := a.key(p)
	if err != nil {
		reply.Error(w, code, err.Error())
		return
	}
	s, ok := a.History.Latest(k)
	if past {
		s, ok = a.History.AsOf(k, at)
	}
	if !ok {
		reply.Error(w, http.StatusNotFound, fmt.Sprintf("no snapshot at or before %q is kept", p.text("at")))
		return
	}
	a.reply(w, s)
}

// calibrators answers with the refit decisions, oldest first.
func (a *api) calibrators(w http.ResponseWriter, r *http.Request) {
	p := parse(r.URL.RawQuery, "model", "version", "limit")
	limit := p.limit(defaultDecisions)
	if p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	}
	a.reply(w, map[string]any{"calibrators": a.History.Calibrators(p.text("model"), p.text("version"), limit)})
}

// alerts answers with the state changes, oldest first, and with the rules that are pending or firing now.
func (a *api) alerts(w http.ResponseWriter, r *http.Request) {
	p := parse(r.URL.RawQuery, "model", "version", "limit")
	limit := p.limit(defaultDecisions)
	if p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	}
	model, version := p.text("model"), p.text("version")
	current := a.History.CurrentAlerts(model, version)
	total := len(current)
	if p.q.Has("limit") && model == "" { // of a model its page needs all, and they are few
		current = current[max(0, total-limit):]
	}
	a.reply(w, map[string]any{
		"alerts":        a.History.Alerts(model, version, limit),
		"current":       current,
		"current_total": total,
	})
}

func (a *api) status(w http.ResponseWriter, r *http.Request) {
	if p := parse(r.URL.RawQuery); p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	}
	a.reply(w, a.statusValue())
}

// statusValue is the reply of /api/v1/status and the data of the event status.
func (a *api) statusValue() map[string]any {
	v := map[string]any{"history": a.History.Totals(), "ready": true, "process": nil,
		"follows_heads": a.Heads != nil, "keeps_history": a.Past != nil}
	if a.Ready != nil {
		if err := a.Ready(); err != nil {
			v["ready"], v["not_ready_because"] = false, err.Error()
		}
	}
	if a.Status != nil {
		v["process"] = a.Status()
	}
	return v
}
