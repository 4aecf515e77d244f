package window

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// snapshots publishes the windows that are due at a pane's end.
func (t *Stage) snapshots(st *State, in *stage.Pane) error {
	k := st.key
	for _, w := range st.windows {
		var latest []byte
		for _, view := range w.due(t, in) {
			s, err := t.snapshot(st, w, view, in)
			if err != nil {
				return err
			}
			if s == nil {
				w.dirty[view.index] = true
				continue
			}
			key := k.Version.Model + "/" + k.Version.Name + "/" + k.Slice
			m, err := pipeline.NewMessage(pipeline.StreamSnapshots, key, in.End, s)
			if err != nil {
				return err
			}
			latest = m.Value
			t.env.Emit(k, m)
		}
		if latest != nil {
			k.Snapshots.Put(w.spec.Name, latest)
		}
	}
	return nil
}

// snapshot makes the snapshot of a window; nil if it is open and has hardly grown.
func (t *Stage) snapshot(st *State, w *window, view view, in *stage.Pane) (*record.Snapshot, error) {
	k := st.key
	raw, cal, late, err := st.sum(w, view.parts)
	if err != nil {
		return nil, err
	}
	if now := shownOf(raw, view); w.spec.Kind == "time" {
		if view.open && !now.grown(w.published(k)) {
			return nil, nil
		}
		w.shown = &now
	}
	s := &record.Snapshot{Schema: 1, Model: k.Version.Model, Version: k.Version.Name, Slice: k.Slice,
		At: record.At(in.End),
		Window: record.Window{Name: w.spec.Name, Kind: w.spec.Kind, Start: record.At(view.start),
			End: record.At(view.end), Final: view.final}}
	s.Late, s.Labelled = late, raw.LabelledRows()
	if w.spec.Kind == "time" {
		n, conf := raw.SeenRows()
		s.Predictions, s.Confidence = n, stage.Number(conf)
		s.Coverage = stage.Number(float64(s.Labelled) / float64(n))
	}
	s.Lag = lagOf(raw)
	s.Lost = t.env.Lost(view.start, view.end)
	if s.Raw, err = t.metrics(k, "raw", raw, in.Index); err != nil {
		return nil, err
	}
	if err := t.detail(&s.Raw, raw); err != nil {
		return nil, err
	}
	if s.Calibrated, err = t.metrics(k, "calibrated", cal, in.Index); err != nil {
		return nil, err
	}
	if s.Served, err = t.served(k, raw, in.Index); err != nil {
		return nil, err
	}
	shown := &stage.Window{Rows: w.spec.Kind == "rows", Start: view.start, End: view.end, Raw: raw}
	for _, show := range k.Shows {
		if err := show(s, shown); err != nil {
			return nil, err
		}
	}
	s.InForce, err = t.inForce(k, in)
	return s, err
}

// leastGrowth is the part of its rows by which an open window grows before it is published again. A window of a day
// would otherwise cost at every pane as much as all others together, and hardly move.
const leastGrowth = .02

// shown is what decides whether a window has grown: when it ends, and its predictions and labelled rows.
type shown struct{ end, rows int64 }

func shownOf(raw *acc.Set, v view) shown {
	n, _ := raw.SeenRows()
	return shown{v.end, n + raw.LabelledRows()}
}

func (s shown) grown(before shown) bool {
	return s.end != before.end || float64(s.rows-before.rows) >= leastGrowth*float64(before.rows)
}

// published returns what was published last of a window. After a restore it reads it from the snapshot.
func (w *window) published(k *stage.Key) shown {
	if w.shown == nil {
		var s record.Snapshot
		if text := k.Snapshots.Get(w.spec.Name); text != nil && json.Unmarshal(text, &s) == nil {
			w.shown = &shown{s.Window.End.UnixNano(), s.Predictions + s.Labelled}
		} else {
			w.shown = &shown{end: math.MinInt64}
		}
	}
	return *w.shown
}

// sum adds up the parts of a window. The sets are valid until summaries are used again.
func (s *State) sum(w *window, parts []*bucket) (raw, cal *acc.Set, late int64, err error) {
	t := s.stage
	r, c, err := t.env.Summaries(s.key.K)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, b := range parts {
		late += b.late
		if err := t.env.Fitted(r.Unpack(&b.raw), b.labelled); err != nil {
			return nil, nil, 0, err
		}
		if err := t.env.Fitted(c.Unpack(&b.cal), b.labelled); err != nil {
			return nil, nil, 0, err
		}
	}
	if s.ofRows {
		rows, err := s.rowsOf(w, parts, s.key.Sample)
		if err == nil {
			err = errors.Join(r.AddLabelled(rows), c.AddLabelled(rows))
		}
		if err != nil {
			return nil, nil, 0, err
		}
	}
	return r.AsSet(), c.AsSet(), late, nil
}

// inForce describes the calibrator in force and its effect so far on the sampled rows of the key.
func (t *Stage) inForce(k *stage.Key, in *stage.Pane) (*record.InForce, error) {
	f := k.Version.Newest()
	if f == nil {
		return nil, nil
	}
	out := &record.InForce{Version: f.Revision, Method: f.Cal.Method(), EffectiveFrom: record.At(f.From)}
	if tmp, ok := f.Cal.(calibrator.Temperature); ok {
		out.Temperature = tmp.T()
	}
	if k.Since.Revision != f.Revision || k.Since.Raw.Empty() {
		return out, nil
	}
	raw, cal, err := t.env.Summaries(k.K)
	if err == nil {
		err = errors.Join(raw.Unpack(&k.Since.Raw), cal.Unpack(&k.Since.Calibrated))
	}
	if err != nil {
		return nil, err
	}
	if out.Raw, err = t.metrics(k, "since-raw", raw.AsSet(), in.Index); err != nil {
		return nil, err
	}
	out.Calibrated, err = t.metrics(k, "since-calibrated", cal.AsSet(), in.Index)
	return out, err
}
