package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// append appends what the task keeps for a key, then the state of every stage under its name. Snapshots may
// be left out.
func (k *keyState) append(dst []byte, table []namedStage, snapshots bool) ([]byte, error) {
	dst = binenc.AppendString(dst, k.Slice)
	dst = binenc.AppendVarint(dst, k.Labelled)
	dst = binenc.AppendVarint(dst, k.LateRows)
	dst = binenc.AppendVarint(dst, k.Began)
	dst = append(dst, k.Ledger[:]...)
	dst = k.appendPending(dst)
	if k.packed != nil {
		b := k.unpacked()
		r := binenc.NewReader(b)
		if of := new(stage.SnapshotReader).Read(&r); snapshots {
			dst = of.Append(dst)
		}
		return append(dst, b[len(b)-r.Len():]...), nil
	}
	if snapshots {
		dst = k.Snapshots.Append(dst)
	}
	return k.appendKept(dst, table)
}

// appendKept appends what is packed of a key at rest beside its snapshots.
func (k *keyState) appendKept(dst []byte, table []namedStage) ([]byte, error) {
	dst = stage.AppendRows(k.Recent.Append(dst), k.Sample)
	dst = binenc.AppendUvarint(dst, uint64(k.Since.Revision))
	dst = k.Since.Calibrated.AppendBinary(k.Since.Raw.AppendBinary(dst))
	return k.appendStages(dst, table)
}

func (k *keyState) appendStages(dst []byte, table []namedStage) (_ []byte, err error) {
	dst = binenc.AppendUvarint(dst, uint64(len(table)))
	for i, e := range table {
		dst = binenc.AppendString(dst, e.name)
		if k.states[i] == nil {
			dst = binenc.AppendBytes(dst, nil)
		} else if dst, err = binenc.AppendBlock(dst, k.states[i].AppendState); err != nil {
			return dst, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return dst, nil
}

// restoreKey reads what append wrote, except the slice's name, which the caller has read.
func (f *fleet) restoreKey(k *keyState, r *binenc.Reader, from *restoring) error {
	k.Labelled, k.LateRows, k.Began = r.Varint(), r.Varint(), r.Varint()
	copy(k.Ledger[:], r.Raw(len(k.Ledger)))
	if err := k.restorePending(r, k.Version.Shape); err != nil {
		return err
	}
	if err := k.restoreKept(f, r, from); err != nil {
		return err
	}
	return k.rest(&f.cfg)
}

// restoreKept reads snapshots, then what appendKept wrote.
func (k *keyState) restoreKept(f *fleet, r *binenc.Reader, from *restoring) error {
	k.Snapshots = from.snapshots.Read(r)
	k.Snapshots.Pack()
	k.Recent.Restore(r)
	k.Sample = stage.RestoreRows(r, k.K)
	k.Since.Revision = int(r.Uvarint())
	sums, _, err := f.env.Summaries(k.K)
	if err != nil {
		return err
	}
	var raw, cal error
	k.Since.Raw, raw = sums.Restore(r)
	k.Since.Calibrated, cal = sums.Restore(r)
	if err := errors.Join(raw, cal); errors.Is(err, acc.ErrCoarse) { // there are more bins now: they begin anew
		k.Since = stage.SinceInForce{}
	} else if err != nil {
		return err
	}
	return k.restoreStages(r, from.decoder, f.cfg.table)
}

// restoreStages gives each stage its state. A stage without a saved state starts empty. A state without a stage is
// dropped.
func (k *keyState) restoreStages(r *binenc.Reader, d *acc.Decoder, table []namedStage) error {
	for range r.Count(2, binenc.MaxItems) {
		name := r.String(binenc.MaxName)
		in := binenc.NewReader(r.Bytes(binenc.MaxBytes))
		if r.Err() != nil {
			break
		}
		i := slices.IndexFunc(table, func(e namedStage) bool { return e.name == name })
		if i < 0 || k.states[i] == nil || in.Len() == 0 {
			continue
		}
		err := k.states[i].RestoreState(&in, d)
		if err == nil {
			err = in.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return r.Err()
}
