package model

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

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
	why := fmt.Sprintf("pooled: other values of %s have more rows, and those of %s count in %s from now on; whether the error is gone is not known", column, name, other.slice)
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
	k.labelled += o.labelled
	k.lateRows += o.lateRows
	for i, w := range k.windows {
		if err := w.absorb(t, o.windows[i]); err != nil {
			return err
		}
	}
	k.recent.absorb(&o.recent, keepRows(&t.cfg))
	k.sample = append(k.sample, o.sample...)
	slices.SortStableFunc(k.sample, func(a, b acc.SampleRow) int {
		if x, y := a.LabelTS/t.cfg.Pane, b.LabelTS/t.cfg.Pane; x != y {
			return int(min(max(x-y, -1), 1))
		}
		return compareSample(a, b)
	})
	k.added += int64(len(k.sample)) // none has its place of before
	k.keepSample(nil, t.cfg.SampleRows)
	if err := t.absorbSince(&k.since, &o.since); err != nil {
		return err
	}
	h := sha256.New()
	h.Write(k.ledger[:])
	h.Write([]byte(o.slice))
	h.Write(o.ledger[:])
	h.Sum(k.ledger[:0])
	return nil
}

func (t *ModelTask) absorbSince(s, o *sinceInForce) error {
	if o.raw == nil || o.revision != s.revision && s.raw != nil {
		return nil
	}
	if s.raw == nil {
		*s = *o
		return nil
	}
	if err := t.mergeInto(s.raw, o.raw); err != nil || o.cal == nil {
		return err
	}
	if s.cal == nil {
		s.cal = o.cal
		return nil
	}
	return t.mergeInto(s.cal, o.cal)
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
			if err := t.mergeInto(*x.dst, *x.set); err != nil {
				return err
			}
		}
	}
	return nil
}

// absorb adds the latest panes of another key.
func (r *recent) absorb(o *recent, keep int64) {
	for _, p := range o.panes {
		i, found := slices.BinarySearchFunc(r.panes, p.end, func(x paneBins, end int64) int { return int(min(max(x.end-end, -1), 1)) })
		if !found {
			r.panes = slices.Insert(r.panes, i, p)
			continue
		}
		have := &r.panes[i]
		have.rawN, have.calN = have.rawN+p.rawN, have.calN+p.calN
		if p.raw != nil {
			have.raw = plusBins(have.raw, p.raw)
		}
		if p.cal != nil {
			have.cal = plusBins(have.cal, p.cal)
		}
	}
	for len(r.panes) > 1 && r.enough(1, keep) {
		r.panes = r.panes[1:]
	}
}
