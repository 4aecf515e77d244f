package window

import (
	"errors"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// snapshots publishes the windows that are due at a pane's end.
func (t *Stage) snapshots(st *State, in *stage.Pane) error {
	k := st.key
	turn := t.turnOf(k, in)
	inForce := sync.OnceValues(func() (*record.InForce, error) { return t.inForce(k, in) }) // of all windows
	for _, w := range st.windows {
		var latest []byte
		now := turn // the first is not waited for
		now.now = turn.now || !k.Snapshots.Has(w.spec.Name)
		for _, view := range w.due(t, in, now) {
			s, err := t.snapshot(st, w, view, in)
			if err == nil {
				s.InForce, err = inForce()
			}
			if err != nil {
				return err
			}
			key := k.Version.Model + "/" + k.Version.Name + "/" + k.Slice
			m, err := pipeline.NewMessage(pipeline.StreamSnapshots, key, in.End, s)
			if err != nil {
				return err
			}
			latest = m.Value
			t.env.Emit(k, m)
		}
		// Between turns a time window only becomes final: one that is older than the one kept.
		if latest != nil && (now.now || w.spec.Kind == KindRows) {
			t.env.PutSnapshot(k, w.spec.Name, latest)
		}
	}
	return nil
}

func (t *Stage) snapshot(st *State, w *window, view view, in *stage.Pane) (*record.Snapshot, error) {
	k := st.key
	raw, cal, late, err := st.sum(w, view.parts, in.Index)
	if err != nil {
		return nil, err
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
	seed := seedOf(k, in)
	if s.Raw, err = t.metrics(raw, seed); err != nil {
		return nil, err
	}
	if s.Calibrated = s.Raw; cal != raw {
		if s.Calibrated, err = t.metrics(cal, seed); err != nil {
			return nil, err
		}
	}
	if err := t.detail(&s.Raw, raw); err != nil {
		return nil, err
	}
	if s.Served, err = t.served(raw, seed); err != nil {
		return nil, err
	}
	shown := &stage.Window{Rows: w.spec.Kind == "rows", Start: view.start, End: view.end, Raw: raw}
	for _, show := range k.Shows {
		if err := show(s, shown); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sum adds up the parts of a window at the end of a pane. The sets are valid until summaries are used again.
func (s *State) sum(w *window, parts []*bucket, pane int64) (raw, cal *acc.Set, late int64, err error) {
	t := s.stage
	runs, err := s.runsOf(w, parts, pane)
	if err != nil {
		return nil, nil, 0, err
	}
	r, c, err := t.env.Summaries(s.key.K)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, b := range parts {
		late += b.late
	}
	if err := t.addParts(r, parts, runs, signals[0]); err != nil {
		return nil, nil, 0, err
	}
	if !s.ofRows && !slices.ContainsFunc(parts, func(b *bucket) bool { return !b.raw.Equal(&b.cal) }) {
		raw = r.AsSet()
		return raw, raw, late, nil // there is no calibrator, or none has changed a row
	}
	if err := t.addParts(c, parts, runs, signals[1]); err != nil {
		return nil, nil, 0, err
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
	if out.Raw, err = t.metrics(raw.AsSet(), seedOf(k, in)); err != nil {
		return nil, err
	}
	out.Calibrated, err = t.metrics(cal.AsSet(), seedOf(k, in))
	return out, err
}
