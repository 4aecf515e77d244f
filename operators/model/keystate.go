package model

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

func (k *keyState) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendString(dst, k.Slice)
	dst = binenc.AppendVarint(dst, k.Labelled)
	dst = binenc.AppendVarint(dst, k.LateRows)
	dst = append(dst, k.Ledger[:]...)
	dst, err := k.appendPending(dst)
	if err != nil {
		return dst, err
	}
	if dst, err = k.appendWindows(dst); err != nil {
		return dst, err
	}
	dst = k.Recent.Append(dst)
	dst = stage.AppendRows(dst, k.Sample)
	dst = binenc.AppendUvarint(dst, uint64(k.Since.Revision))
	for _, s := range []*acc.Set{k.Since.Raw, k.Since.Calibrated} {
		if dst, err = stage.AppendSet(dst, s); err != nil {
			return dst, err
		}
	}
	return binenc.AppendBlock(dst, k.appendDetect)
}

// restore reads what append wrote after the slice's name. Windows and rules are those of the configuration: what the checkpoint has of
// others is left.
func (k *keyState) restore(r *binenc.Reader, d *acc.Decoder, cfg *ModelConfig) error {
	k.Labelled, k.LateRows = r.Varint(), r.Varint()
	copy(k.Ledger[:], r.Raw(len(k.Ledger)))
	if err := k.restorePending(r, d); err != nil {
		return err
	}
	if err := k.restoreWindows(r, d); err != nil {
		return err
	}
	k.Recent.Restore(r)
	k.Sample = stage.RestoreRows(r)
	k.Since.Revision = int(r.Uvarint())
	for _, s := range []**acc.Set{&k.Since.Raw, &k.Since.Calibrated} {
		var err error
		if *s, err = stage.RestoreSet(r, d); err != nil {
			return err
		}
	}
	in := binenc.NewReader(r.Bytes(binenc.MaxBytes))
	if err := r.Err(); err != nil {
		return err
	}
	return k.restoreDetect(&in, cfg)
}

func (b *inbox) appendPending(dst []byte) ([]byte, error) {
	var err error
	dst = binenc.AppendUvarint(dst, uint64(len(b.pending)))
	for _, l := range slices.Sorted(maps.Keys(b.pending)) {
		cells := b.pending[l]
		dst = binenc.AppendVarint(dst, l)
		dst = binenc.AppendVarint(dst, b.late[l])
		dst = binenc.AppendUvarint(dst, uint64(len(cells)))
		for _, p := range slices.Sorted(maps.Keys(cells)) {
			dst = binenc.AppendVarint(dst, p)
			if dst, err = stage.AppendSet(dst, cells[p]); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

func (b *inbox) restorePending(r *binenc.Reader, d *acc.Decoder) error {
	for range r.Count(3, binenc.MaxItems) {
		l, late := r.Varint(), r.Varint()
		cells := map[int64]*acc.Set{}
		for range r.Count(2, binenc.MaxItems) {
			p := r.Varint()
			s, err := stage.RestoreSet(r, d)
			if err != nil {
				return err
			}
			cells[p] = s
		}
		b.pending[l] = cells
		if late != 0 {
			b.late[l] = late
		}
	}
	return r.Err()
}

func (b *bucket) append(dst []byte) ([]byte, error) {
	for _, v := range []int64{b.start, b.end, b.late, b.labelled} {
		dst = binenc.AppendVarint(dst, v)
	}
	dst, err := stage.AppendSet(dst, b.raw)
	if err != nil {
		return dst, err
	}
	return stage.AppendSet(dst, b.cal)
}

func (b *bucket) restore(r *binenc.Reader, d *acc.Decoder) error {
	b.start, b.end, b.late, b.labelled = r.Varint(), r.Varint(), r.Varint(), r.Varint()
	var err error
	if b.raw, err = stage.RestoreSet(r, d); err != nil {
		return err
	}
	b.cal, err = stage.RestoreSet(r, d)
	return err
}
