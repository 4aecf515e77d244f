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
	t.end(&k.Key, k.EndAlerts(why), end)
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
	for i, s := range k.states {
		if s == nil || o.states[i] == nil {
			continue
		}
		if err := s.Merge(o.states[i]); err != nil {
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
