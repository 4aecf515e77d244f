package window

import (
	"errors"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// snapshots publishes the windows that are due at a pane's end.
func (t *Stage) snapshots(st *State, in *stage.Pane) error {
	k := st.key
	turn := t.turnOf(k, in)
	inForce := sync.OnceValues(func() (*record.InForce, error) { return t.inForce(k, in) }) // of all windows
	shown := sync.OnceFunc(func() {
		for _, f := range k.Shown {
			f()
		}
	})
	for _, w := range st.windows {
		var latest []byte
		now := turn // the first is not waited for
		now.now = turn.now || !k.Snapshots.Has(w.spec.Name)
		for _, view := range w.due(t, in, now) {
			if w.spec.Kind == KindTime {
				shown()
			}
			k.Chain(pipeline.Message{Stream: pipeline.StreamSnapshots, Value: view.append(nil, w.spec.Name, in.End)})
			if latest = []byte{}; t.env.Unseen {
				continue
			}
			m, err := t.message(st, w, view, in, inForce)
			if err != nil {
				return err
			}
			latest = m.Value
			t.env.Emit(nil, m)
		}
		// Between turns a time window only becomes final: one that is older than the one kept.
		if latest != nil && (now.now || w.spec.Kind == KindRows) {
			t.env.PutSnapshot(k, w.spec.Name, latest)
		}
	}
	return nil
}

// message is the snapshot of a view as it is published.
func (t *Stage) message(st *State, w *window, view view, in *stage.Pane,
	inForce func() (*record.InForce, error)) (m pipeline.Message, err error) {
	s, err := t.snapshot(st, w, view, in)
	if err == nil {
		s.InForce, err = inForce()
	}
	if err != nil {
		return m, err
	}
	key := s.Model + "/" + s.Version + "/" + s.Slice
	return pipeline.NewMessage(pipeline.StreamSnapshots, key, in.End, s)
}

// append appends which snapshot a view at an event time is, for the ledger: the window, and how many rows it has. Its
// figures follow from the state and from what else is in the ledger, and nothing follows from them: so a replay that
// nobody reads them of need not compute them, and a build with further figures ends with the same hash.
func (v *view) append(dst []byte, window string, at int64) []byte {
	dst = append(binenc.AppendString(dst, window), binenc.Flags(v.final))
	var labelled, late int64
	for _, b := range v.parts {
		labelled, late = labelled+b.labelled, late+b.late
	}
	for _, x := range []int64{v.start, v.end, at, labelled, late} {
		dst = binenc.AppendVarint(dst, x)
	}
	return dst
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
	shown := &stage.Window{Rows: w.spec.Kind == "rows", Start: view.start, Raw: raw}
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
