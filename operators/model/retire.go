package model

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/slicing"
)

// retire ends the statistics of a slice value that another value replaces. Its alerts are resolved. Its sums and its
// ledger join those of ~other. Its tests and references end, because they cover its rows only.
func (t *stepper) retire(column, value string, end int64) error {
	name := column + "=" + value
	k := t.keys[name]
	if k == nil {
		return nil
	}
	other := t.key(column+"="+slicing.Other, &t.cfg)
	why := fmt.Sprintf("pooled: other values of %s have more rows, and those of %s count in %s from now on; %s", column,
		name, other.Slice, errorUnknown)
	t.alert.End(&k.Key, k.EndAlerts(why), end)
	for pane := range sorted(k.pending) {
		if err := k.move(pane, inboxIn(t.pendingSlices, name)); err != nil {
			return err
		}
	}
	delete(t.keys, name)
	t.counts.AddReason(CountEndedSlices, EndedPooled, 1)
	return t.absorb(other, k)
}

// absorb adds the sums of key o to key k.
func (t *stepper) absorb(k, o *keyState) error {
	k.Labelled += o.Labelled
	k.LateRows += o.LateRows
	for i, st := range k.states {
		if st == nil || o.states[i] == nil {
			continue
		}
		if err := st.Merge(o.states[i]); err != nil {
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
	k.Added += int64(len(k.Sample)) // all rows count as new, because the sample was sorted again
	k.Keep(nil, t.cfg.sampleOf(&k.Key))
	if err := t.absorbSince(k.K, &k.Since, &o.Since); err != nil {
		return err
	}
	h := sha256.New()
	h.Write(k.Ledger[:])
	h.Write([]byte(o.Slice))
	h.Write(o.Ledger[:])
	h.Sum(k.Ledger[:0])
	return nil
}

func (t *stepper) absorbSince(k int, a, o *stage.SinceInForce) error {
	if o.Raw.Empty() || o.Revision != a.Revision && !a.Raw.Empty() {
		return nil
	}
	a.Revision = o.Revision
	if err := t.env.Absorb(k, &a.Raw, &o.Raw, 0); err != nil {
		return err
	}
	return t.env.Absorb(k, &a.Calibrated, &o.Calibrated, 0)
}
