package history

import (
	"sort"

	"github.com/plumbline/plumbline/pipeline/record"
)

// SeriesInfo describes one series of snapshots.
type SeriesInfo struct {
	SnapshotKey
	Kind      string // of the window: time | rows
	Snapshots int
	LatestAt  record.Time // At of the newest snapshot
	Labelled  int64       // labelled rows of the key by then
	Moved     bool        // another process has the model now
}

// Series lists the series, sorted by model, version, slice and window.
func (h *History) Series() []SeriesInfo {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]SeriesInfo, 0, len(h.series.m))
	for k := range h.series.m {
		if s, _ := h.series.peek(k); len(s.ring) > 0 {
			out = append(out, h.info(k, s))
		}
	}
	sortSeries(out)
	return out
}

// SeriesOf lists the series of a model, sorted as Series.
func (h *History) SeriesOf(model string) []SeriesInfo {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []SeriesInfo
	for k := range h.series.m {
		if s, _ := h.series.peek(k); k.Model == model && len(s.ring) > 0 {
			out = append(out, h.info(k, s))
		}
	}
	sortSeries(out)
	return out
}

func (h *History) info(k SnapshotKey, sr *series) SeriesInfo {
	newest := sr.ring[len(sr.ring)-1].snap
	return SeriesInfo{k, sr.kind, len(sr.ring), newest.At, newest.Labelled, h.shares.movedModel(k.Model)}
}

func sortSeries(out []SeriesInfo) {
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		switch {
		case a.Model != b.Model:
			return a.Model < b.Model
		case a.Version != b.Version:
			return a.Version < b.Version
		case a.Slice != b.Slice:
			return a.Slice < b.Slice
		}
		return a.Window < b.Window
	})
}

// Latest returns the newest snapshot of the series k.
func (h *History) Latest(k SnapshotKey) (record.Snapshot, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s, ok := h.series.peek(k)
	if !ok || len(s.ring) == 0 {
		return record.Snapshot{}, false
	}
	return *s.ring[len(s.ring)-1].snap, true
}

// AsOf returns the newest snapshot of k whose window end (kind time) or pane end is at or before t, in Unix
// nanoseconds.
func (h *History) AsOf(k SnapshotKey, t int64) (record.Snapshot, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s, ok := h.series.peek(k)
	if !ok {
		return record.Snapshot{}, false
	}
	i := sort.Search(len(s.ring), func(i int) bool { return s.ring[i].x > t })
	if i == 0 {
		return record.Snapshot{}, false
	}
	return *s.ring[i-1].snap, true
}

// Snapshots returns the newest snapshots of k, at most limit (0 = all), oldest first; false for an unknown key.
func (h *History) Snapshots(k SnapshotKey, limit int) ([]record.Snapshot, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s, ok := h.series.peek(k)
	if !ok {
		return nil, false
	}
	ring := newest(s.ring, limit)
	out := make([]record.Snapshot, len(ring))
	for i, e := range ring {
		out[i] = *e.snap
	}
	return out, true
}

// Alerts returns the newest state changes of a model, at most limit (0 = all), oldest first.
// An empty model or version means any.
func (h *History) Alerts(model, version string, limit int) []record.Alert {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var all []timed[*record.Alert]
	h.eachModel(model, version, func(d *decisions) { all = append(all, d.alerts...) })
	return merged(all, limit)
}

// CurrentAlerts returns the pending and firing alerts, oldest first. An empty model or version means any.
func (h *History) CurrentAlerts(model, version string) []record.Alert {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var all []timed[*record.Alert]
	h.eachModel(model, version, func(d *decisions) {
		for _, a := range d.current {
			all = append(all, a)
		}
	})
	// The map's order must not show where times are equal.
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].rec, all[j].rec
		return a.Slice < b.Slice || a.Slice == b.Slice && a.Rule < b.Rule
	})
	return merged(all, 0)
}

// Calibrators returns the newest refit decisions, published or not, at most limit (0 = all), oldest first.
// An empty model or version means any.
func (h *History) Calibrators(model, version string, limit int) []record.Calibrator {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var all []timed[*record.Calibrator]
	h.eachModel(model, version, func(d *decisions) { all = append(all, d.calibrators...) })
	return merged(all, limit)
}

// Totals returns the counters.
func (h *History) Totals() Stats {
	h.mu.RLock()
	defer h.mu.RUnlock()
	st := h.stats
	st.Keys, st.Snapshots, st.MovedTasks = len(h.series.m), h.kept, len(h.shares.moved)
	return st
}

// eachModel calls f in the order of (model, version).
func (h *History) eachModel(model, version string, f func(*decisions)) {
	if model != "" && version != "" {
		if d, ok := h.models.peek(modelKey{model, version}); ok {
			f(d)
		}
		return
	}
	var keys []modelKey
	for k := range h.models.m {
		if (model == "" || k.model == model) && (version == "" || k.version == version) {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		return a.model < b.model || a.model == b.model && a.version < b.version
	})
	for _, k := range keys {
		d, _ := h.models.peek(k)
		f(d)
	}
}

func merged[T any](all []timed[*T], limit int) []T {
	sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
	all = newest(all, limit)
	out := make([]T, len(all))
	for i, e := range all {
		out[i] = *e.rec
	}
	return out
}

func newest[E any](s []E, limit int) []E {
	if limit > 0 && len(s) > limit {
		return s[len(s)-limit:]
	}
	return s
}
