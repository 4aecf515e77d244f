package model

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/slicing"
)

// retire ends the statistics of a value that another one has taken the place of: what fires is resolved, its sums join those of ~other,
// and so does its ledger. Tests and references end: they were of its rows alone. It is counted.
func (t *ModelTask) retire(v *version, column, value string, end int64) error {
	name := column + "=" + value
	k := v.keys[name]
	if k == nil {
		return nil
	}
	other := v.key(column+"="+slicing.Other, &t.cfg)
	why := fmt.Sprintf("pooled: other values of %s have more rows, and those of %s count in %s from now on; whether the error is gone is not known", column, name, other.Slice)
	for i := range k.rules {
		t.end(v, k, &k.rules[i], why, end)
	}
	for _, a := range k.alarms {
		t.end(v, k, &a.alert, why, end)
	}
	for _, pane := range slices.Sorted(maps.Keys(k.pending)) {
		b := v.strangers[name]
		if b == nil {
			fresh := newInbox()
			b = &fresh
			v.strangers[name] = b
		}
		if err := k.move(pane, b); err != nil {
			return err
		}
	}
	delete(v.keys, name)
	t.counts.AddReason(CountEndedSlices, EndedPooled, 1)
	return t.absorb(other, k)
}

// absorb adds the sums of a key to another's.
func (t *ModelTask) absorb(k, o *keyState) error {
	k.Labelled += o.Labelled
	k.LateRows += o.LateRows
	for i, w := range k.windows {
		if err := w.absorb(t, o.windows[i]); err != nil {
			return err
		}
	}
	k.Recent.Merge(&o.Recent, keepRows(&t.cfg))
	k.Sample = append(k.Sample, o.Sample...)
	slices.SortStableFunc(k.Sample, func(a, b acc.SampleRow) int {
		if x, y := a.LabelTS/t.cfg.Pane, b.LabelTS/t.cfg.Pane; x != y {
			return int(min(max(x-y, -1), 1))
		}
		return stage.CompareRows(a, b)
	})
	k.Added += int64(len(k.Sample)) // none has its place of before
	k.keepSample(nil, t.cfg.SampleRows)
	if err := t.absorbSince(&k.Since, &o.Since); err != nil {
		return err
	}
	h := sha256.New()
	h.Write(k.Ledger[:])
	h.Write([]byte(o.Slice))
	h.Write(o.Ledger[:])
	h.Sum(k.Ledger[:0])
	return nil
}

func (t *ModelTask) absorbSince(s, o *stage.SinceInForce) error {
	if o.Raw == nil || o.Revision != s.Revision && s.Raw != nil {
		return nil
	}
	if s.Raw == nil {
		*s = *o
		return nil
	}
	if err := t.env.MergeInto(s.Raw, o.Raw); err != nil || o.Calibrated == nil {
		return err
	}
	if s.Calibrated == nil {
		s.Calibrated = o.Calibrated
		return nil
	}
	return t.env.MergeInto(s.Calibrated, o.Calibrated)
}

// absorb adds what another window of the same kind holds. Tumbling windows by rows have no common cut, and are left alone.
func (w *window) absorb(t *ModelTask, o *window) error {
	if w.spec.Kind == "rows" {
		if w.tumbling() {
			return nil
		}
		return w.absorbRows(t, o)
	}
	if len(w.buckets) == 0 {
		w.started, w.final = w.started || o.started, max(w.final, o.final)
	}
	for _, i := range slices.Sorted(maps.Keys(o.buckets)) {
		if i+w.count()-1 < w.final {
			continue
		}
		if have := w.buckets[i]; have == nil {
			w.buckets[i] = o.buckets[i]
		} else if err := have.absorb(t, o.buckets[i]); err != nil {
			return err
		}
		for e := i; e < i+w.count(); e++ {
			if e >= w.final {
				w.dirty[e] = true
			}
		}
	}
	return nil
}

func (w *window) absorbRows(t *ModelTask, o *window) error {
	for _, b := range o.panes {
		i, found := slices.BinarySearchFunc(w.panes, b.end, func(x *bucket, end int64) int { return int(min(max(x.end-end, -1), 1)) })
		if found {
			if err := w.panes[i].absorb(t, b); err != nil {
				return err
			}
		} else {
			w.panes = slices.Insert(w.panes, i, b)
		}
		w.total += b.labelled
	}
	for len(w.panes) > 0 && w.total-w.panes[0].labelled >= w.spec.Rows {
		w.total -= w.panes[0].labelled
		w.panes = slices.Delete(w.panes, 0, 1)
	}
	return nil
}

func (b *bucket) absorb(t *ModelTask, o *bucket) error {
	b.late, b.labelled = b.late+o.late, b.labelled+o.labelled
	for _, x := range []struct{ dst, set **acc.Set }{{&b.raw, &o.raw}, {&b.cal, &o.cal}} {
		switch {
		case *x.set == nil:
		case *x.dst == nil:
			*x.dst = *x.set
		default:
			if err := t.env.MergeInto(*x.dst, *x.set); err != nil {
				return err
			}
		}
	}
	return nil
}
