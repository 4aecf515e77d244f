package model

import (
	"slices"
	"time"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// After a deployment the version before has no rows that could end its alerts. So the alerts of a version are inhibited
// while it is silent: when other versions of the model have had predictions for Config.SilentAfter since its last one,
// whatever labels still come; or when the whole model has had no rows for modelPause. The alerts keep their state, for
// rows may come back. A pause of the whole model counts as at most half of SilentAfter for the first: two versions that
// pause together do not come back with the same pane.
//
// So are those of a slice (a customer that has left) while it has had no predictions for modelPause in which others of
// its version had some, of which a pause counts as at most pauseAtMost.

// pauseAtMost is the longest time, in ns, that a pause of a version adds to that of a slice.
const pauseAtMost = int64(24 * time.Hour)

// modelPause is how long, in ns, a whole model has no rows before its versions are silent. Between the runs of a model
// that runs once a day its alerts stay.
const modelPause = int64(48 * time.Hour)

// predicted reports whether predictions of a label pane wait for the version.
func (v *version) predicted(pane int64) bool {
	k := v.keys[""]
	return k != nil && k.predicted(pane)
}

func (k *keyState) predicted(pane int64) bool {
	for _, c := range k.pending[pane] {
		if c.predictions > 0 {
			return true
		}
	}
	return false
}

// hush decides which versions are silent at the end of a label pane. Panes without rows change nothing, but for the one
// that pauseEnds names.
func (m *model) hush(pane int64, cfg *Config) {
	after := cfg.SilentAfter / cfg.Pane
	if cfg.SilentAfter == 0 {
		return
	}
	before, last, any := int64(minPane), int64(minPane), false
	for name, v := range m.versions {
		last = max(last, v.last)
		if _, _, shadow := record.BaseVersion(name); !shadow {
			before, any = max(before, v.served), any || v.predicted(pane)
		}
	}
	for _, v := range m.versions {
		v.hushSlices(pane, cfg)
		switch {
		case v.predicted(pane):
			v.served, v.unserved = pane, 0
		case any && v.served != minPane:
			v.unserved += min(pane-before, max(1, after/2))
		}
		v.Silent = ""
		if v.served != minPane && (v.unserved >= max(1, after) || pane-last >= modelPause/cfg.Pane) {
			v.Silent = record.NoPredictions + record.At((v.served+1)*cfg.Pane).String()
		}
	}
}

// hushSlices decides which slices are silent. Nothing is kept of those without alerts.
func (v *version) hushSlices(pane int64, cfg *Config) {
	predicted := v.predicted(pane)
	for name, k := range v.keys {
		switch {
		case name == "":
			continue
		case !k.alerting():
			k.served, k.unserved = minPane, 0
		case !predicted:
		case k.served == minPane || k.predicted(pane):
			k.served, k.unserved = pane, 0
		default:
			k.unserved += min(pane-v.served, max(1, pauseAtMost/cfg.Pane))
		}
		k.Silent = ""
		if k.served != minPane && k.unserved >= max(1, modelPause/cfg.Pane) {
			k.Silent = record.NoPredictions + record.At((k.served+1)*cfg.Pane).String()
		}
	}
}

// alerting reports whether an alert is pending or firing. It is the same of a key at rest, for which keys rest is not:
// after a restart other ones do.
func (k *keyState) alerting() bool {
	return k.isAlerting || slices.ContainsFunc(k.Alerts, func(a *stage.Alert) bool { return a.State != stage.Inactive })
}

// pauseEnds is the label pane from which on the whole model is silent; barrier if it is none from next on, or if no
// alert needs it.
func (m *model) pauseEnds(barrier int64, cfg *Config) int64 {
	last, alerted := int64(minPane), false
	for _, v := range m.versions {
		last = max(last, v.last)
		for _, k := range v.keys {
			alerted = alerted || k.alerting()
		}
	}
	if due := last + modelPause/cfg.Pane; cfg.SilentAfter > 0 && alerted && last != minPane && due >= m.next {
		return min(due, barrier)
	}
	return barrier
}

// servedSection is the checkpoint section with the label panes of the versions' last predictions. After a checkpoint
// of a build that did not tell them apart they are those of the last rows.
func (f *fleet) servedSection() pipeline.Section {
	return pipeline.Section{
		Name:    "served",
		Version: 1,
		State: f.paneSection("last predictions", func(v *version) (pane, passed *int64) {
			return &v.served, &v.unserved
		}),
		Fresh: func() {
			for _, v := range f.versions() {
				v.served = v.last
			}
		},
	}
}

// servedSlicesSection is the checkpoint section with the same of the slices that have alerts.
func (f *fleet) servedSlicesSection() pipeline.Section {
	return pipeline.Section{Name: "served_slices", Version: 1, State: &versionSection{
		of:   f,
		what: "last predictions of slices",
		has:  func(v *version) bool { return v.servedSlices() > 0 },
		append: func(dst []byte, v *version) []byte {
			dst = binenc.AppendUvarint(dst, uint64(v.servedSlices()))
			for name, k := range sorted(v.keys) {
				if k.served != minPane {
					dst = binenc.AppendVarint(binenc.AppendVarint(binenc.AppendString(dst, name), k.served), k.unserved)
				}
			}
			return dst
		},
		restore: func(r *binenc.Reader, v *version) error {
			for range r.Count(3, binenc.MaxItems) {
				name, pane, passed := r.String(binenc.MaxName), r.Varint(), max(0, r.Varint())
				if k := v.keys[name]; k != nil { // else its column is no longer configured
					k.served, k.unserved = pane, passed
				}
			}
			return r.Err()
		},
	}}
}

// servedSlices is of how many slices something is kept.
func (v *version) servedSlices() (n int) {
	for _, k := range v.keys {
		if k.served != minPane {
			n++
		}
	}
	return n
}
