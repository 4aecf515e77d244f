package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// spoken are the latest snapshots, without those of model versions that are silent: their newest is older by more than
// silent than the newest of the model. They would stay as they are, and so would the alerts that others make of them.
// What another process has now, that one exports.
func spoken(h *history.History, silent time.Duration) (snaps []record.Snapshot) {
	ofModel, ofVersion := map[string]record.Time{}, map[modelKey]record.Time{}
	for _, s := range h.Series() {
		snap, ok := h.Latest(s.SnapshotKey)
		if !ok || s.Moved {
			continue
		}
		snaps = append(snaps, snap)
		if snap.At.After(ofModel[s.Model]) {
			ofModel[s.Model] = snap.At
		}
		if key := (modelKey{s.Model, s.Version}); snap.At.After(ofVersion[key]) {
			ofVersion[key] = snap.At
		}
	}
	return slices.DeleteFunc(snaps, func(s record.Snapshot) bool {
		behind := ofModel[s.Model].UnixNano() - ofVersion[modelKey{s.Model, s.Version}].UnixNano()
		return silent > 0 && behind > int64(silent)
	})
}

// exported are those of the latest snapshots that /metrics has: of whole model versions all, of slices the worst of
// each model version and window; leftOut counts the others. At most MaxSeries in all, whole versions first; dropped
// counts what is beyond.
func exported(h *history.History, latest []record.Snapshot, worst int) (snaps []record.Snapshot, leftOut,
	dropped int) {
	firing := map[history.SnapshotKey]bool{}
	for _, a := range h.CurrentAlerts("", "") {
		if a.State == "firing" && a.Slice != "" {
			firing[history.SnapshotKey{Model: a.Model, Version: a.Version, Slice: a.Slice}] = true
		}
	}
	var whole []record.Snapshot
	of := map[history.SnapshotKey][]record.Snapshot{}
	var groups []history.SnapshotKey
	for _, snap := range latest {
		if snap.Slice == "" {
			whole = append(whole, snap)
			continue
		}
		group := history.SnapshotKey{Model: snap.Model, Version: snap.Version, Window: snap.Window.Name}
		if of[group] == nil {
			groups = append(groups, group)
		}
		of[group] = append(of[group], snap)
	}
	snaps = whole
	for _, g := range groups {
		all := of[g]
		slices.SortStableFunc(all, func(a, b record.Snapshot) int {
			x := firing[history.SnapshotKey{Model: a.Model, Version: a.Version, Slice: a.Slice}]
			y := firing[history.SnapshotKey{Model: b.Model, Version: b.Version, Slice: b.Slice}]
			if x != y {
				return map[bool]int{true: -1, false: 1}[x]
			}
			return cmp.Compare(badness(&b), badness(&a))
		})
		n := min(len(all), worst)
		snaps, leftOut = append(snaps, all[:n]...), leftOut+len(all)-n
	}
	if over := len(snaps) - MaxSeries; over > 0 {
		snaps, dropped = snaps[:MaxSeries], over
	}
	return snaps, leftOut, dropped
}

// pooledSlice is the end of the name of a slice that pools the values of its column.
const pooledSlice = "=~other"

// collectPooled shows how many values are pooled, by the newest snapshot of any window.
func collectPooled(ch chan<- prometheus.Metric, latest []record.Snapshot) {
	newest := map[history.SnapshotKey]record.Snapshot{}
	for _, snap := range latest {
		key := history.SnapshotKey{Model: snap.Model, Version: snap.Version, Slice: snap.Slice}
		if strings.HasSuffix(snap.Slice, pooledSlice) && snap.At.After(newest[key].At) {
			newest[key] = snap
		}
	}
	for key, s := range newest {
		gauge(ch, descPooled, float64(s.PooledValues), key.Model, key.Version, key.Slice)
	}
}

// badness orders slices: by how much of the ECE is sure, the lower end of its interval less what a calibrated model
// would show, of what the calibrator in force gives or else of the raw confidence.
func badness(s *record.Snapshot) float64 {
	m := &s.Calibrated
	if m.N == 0 {
		m = &s.Raw
	}
	if m.ECELo == nil || m.ECENull == nil {
		return math.Inf(-1)
	}
	return *m.ECELo - *m.ECENull
}

// exportedAlerts are the alerts that /metrics has: at most MaxSeries, those that nobody inhibits first.
func exportedAlerts(h *history.History) []record.Alert {
	all := h.CurrentAlerts("", "")
	slices.SortStableFunc(all, func(a, b record.Alert) int {
		return cmp.Compare(min(len(a.InhibitedBy), 1), min(len(b.InhibitedBy), 1))
	})
	return all[:min(len(all), MaxSeries)]
}
