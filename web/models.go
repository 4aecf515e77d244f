package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
	"github.com/plumbline/plumbline/web/reply"
)

// listed is a model version with what is known of it.
type listed struct {
	model, version  string
	labelled        int64
	moved           bool
	pending, firing int                   // alerts that no other stands for
	state           *record.VersionStatus // nil: not in the state of this process
	series          []history.SeriesInfo
}

// versions lists every version that has snapshots here or is in the state of this process, sorted by name.
func (a *api) versions() []*listed {
	type key struct{ model, version string }
	by := map[key]*listed{}
	of := func(model, version string) *listed {
		v := by[key{model, version}]
		if v == nil {
			v = &listed{model: model, version: version}
			by[key{model, version}] = v
		}
		return v
	}
	for _, s := range a.History.Series() {
		v := of(s.Model, s.Version)
		v.series = append(v.series, s)
		v.labelled, v.moved = max(v.labelled, s.Labelled), s.Moved
	}
	if a.Versions != nil {
		for _, s := range a.Versions() {
			of(s.Model, s.Version).state = &s
		}
	}
	for _, al := range a.History.CurrentAlerts("", "") {
		v := by[key{al.Model, al.Version}]
		switch {
		case v == nil || al.InhibitedBy != "":
		case al.State == "firing":
			v.firing++
		default:
			v.pending++
		}
	}
	out := make([]*listed, 0, len(by))
	for _, v := range by {
		out = append(out, v)
	}
	slices.SortFunc(out, byName)
	return out
}

func byName(a, b *listed) int {
	return cmp.Or(strings.Compare(a.model, b.model), strings.Compare(a.version, b.version))
}

// models answers with the tree of models, versions, slices and windows. Where there are more versions than the limit,
// those of the model that is asked for, those that have an alarm and those with the most labelled rows are in it; total
// says how many there are.
func (a *api) models(w http.ResponseWriter, r *http.Request) {
	p := parse(r.URL.RawQuery, "search", "model", "limit")
	limit := p.limit(defaultVersions)
	if p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	}
	all := a.versions()
	total, text, model := len(all), p.text("search"), p.text("model")
	all = slices.DeleteFunc(all, func(v *listed) bool {
		return v.model != model && !strings.Contains(v.model, text) && !strings.Contains(v.version, text)
	})
	matching := len(all)
	slices.SortStableFunc(all, func(a, b *listed) int {
		return cmp.Or(-compareBool(a.model == model, b.model == model), -compareBool(a.firing > 0, b.firing > 0),
			-cmp.Compare(a.labelled, b.labelled))
	})
	all = all[:min(limit, matching)]
	slices.SortFunc(all, byName)
	tree := []modelInfo{}
	for _, v := range all {
		if n := len(tree); n == 0 || tree[n-1].Model != v.model {
			tree = append(tree, modelInfo{Model: v.model})
		}
		m := &tree[len(tree)-1]
		m.Versions = append(m.Versions, v.info())
	}
	a.reply(w, map[string]any{"models": tree, "total": total, "matching": matching, "shown": len(all)})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (v *listed) info() versionInfo {
	out := versionInfo{Version: v.version, Moved: v.moved, Pending: v.pending, Firing: v.firing, Slices: []sliceInfo{}}
	if s := v.state; s != nil {
		out.Classes, out.Settled, out.Others = s.Classes, s.Settled, s.Others
	}
	for _, s := range v.series { // sorted, so that equal names are adjacent
		if n := len(out.Slices); n == 0 || out.Slices[n-1].Slice != s.Slice {
			out.Slices = append(out.Slices, sliceInfo{Slice: s.Slice})
		}
		sl := &out.Slices[len(out.Slices)-1]
		sl.Windows = append(sl.Windows, windowInfo{s.Window, s.Kind, s.Snapshots, s.LatestAt})
	}
	return out
}
