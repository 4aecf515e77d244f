package model

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

func (k *keyState) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendString(dst, k.slice)
	dst = binenc.AppendVarint(dst, k.labelled)
	dst = binenc.AppendVarint(dst, k.lateRows)
	dst = append(dst, k.ledger[:]...)
	dst, err := k.appendPending(dst)
	if err != nil {
		return dst, err
	}
	if dst, err = k.appendWindows(dst); err != nil {
		return dst, err
	}
	dst = k.recent.append(dst)
	dst = appendRows(dst, k.sample)
	dst = binenc.AppendUvarint(dst, uint64(k.since.revision))
	for _, s := range []*acc.Set{k.since.raw, k.since.cal} {
		if dst, err = appendSet(dst, s); err != nil {
			return dst, err
		}
	}
	dst = binenc.AppendUvarint(dst, detectFollows)
	return binenc.AppendBlock(dst, k.appendDetect)
}

// restore reads what append wrote after the slice's name. Windows and rules are those of the configuration: what the checkpoint has of
// others is left.
func (k *keyState) restore(r *binenc.Reader, d *acc.Decoder, cfg *ModelConfig) error {
	k.labelled, k.lateRows = r.Varint(), r.Varint()
	copy(k.ledger[:], r.Raw(len(k.ledger)))
	if err := k.restorePending(r, d); err != nil {
		return err
	}
	if err := k.restoreWindows(r, d); err != nil {
		return err
	}
	k.recent.restore(r)
	k.sample = restoreRows(r)
	k.since.revision = int(r.Uvarint())
	for _, s := range []**acc.Set{&k.since.raw, &k.since.cal} {
		var err error
		if *s, err = restoreSet(r, d); err != nil {
			return err
		}
	}
	return k.restoreRules(r, cfg)
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
			if dst, err = appendSet(dst, cells[p]); err != nil {
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
			s, err := restoreSet(r, d)
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
	dst, err := appendSet(dst, b.raw)
	if err != nil {
		return dst, err
	}
	return appendSet(dst, b.cal)
}

func (b *bucket) restore(r *binenc.Reader, d *acc.Decoder) error {
	b.start, b.end, b.late, b.labelled = r.Varint(), r.Varint(), r.Varint(), r.Varint()
	var err error
	if b.raw, err = restoreSet(r, d); err != nil {
		return err
	}
	b.cal, err = restoreSet(r, d)
	return err
}

func (r *recent) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(r.panes)))
	for i := range r.panes {
		p := &r.panes[i]
		dst = binenc.AppendVarint(dst, p.end)
		dst = binenc.AppendVarint(dst, p.rawN)
		dst = appendBins(dst, p.raw)
		dst = binenc.AppendVarint(dst, p.calN)
		dst = appendBins(dst, p.cal)
	}
	return dst
}

func (r *recent) restore(in *binenc.Reader) {
	for range in.Count(5, binenc.MaxItems) {
		var p paneBins
		p.end, p.rawN = in.Varint(), in.Varint()
		p.raw = restoreBins(in)
		p.calN = in.Varint()
		p.cal = restoreBins(in)
		r.panes = append(r.panes, p)
	}
}

func appendBins(dst []byte, bins []metric.Bin) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(bins)))
	for _, b := range bins {
		dst = binenc.AppendVarint(dst, b.N)
		dst = binenc.AppendFloat64(binenc.AppendFloat64(binenc.AppendFloat64(dst, b.W), b.SumC), b.SumA)
	}
	return dst
}

func restoreBins(r *binenc.Reader) []metric.Bin {
	n := r.Count(25, binenc.MaxItems)
	if n == 0 {
		return nil
	}
	bins := make([]metric.Bin, n)
	for i := range bins {
		bins[i] = metric.Bin{N: r.Varint(), W: r.Float64(), SumC: r.Float64(), SumA: r.Float64()}
	}
	return bins
}

func appendRows(dst []byte, rows []acc.SampleRow) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(rows)))
	for i := range rows {
		row := &rows[i]
		dst = append(dst, row.ID[:]...)
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, row.TS), row.LabelTS)
		dst = binenc.AppendFixed32(dst, math.Float32bits(row.W))
		dst = binenc.AppendUvarint(dst, uint64(row.Y))
		dst = binenc.AppendUvarint(dst, uint64(len(row.Z)))
		for _, z := range row.Z {
			dst = binenc.AppendFixed32(dst, math.Float32bits(z))
		}
	}
	return dst
}

func restoreRows(r *binenc.Reader) []acc.SampleRow {
	n := r.Count(24, binenc.MaxItems)
	if n == 0 {
		return nil
	}
	const together = 4096 // scores in one piece of memory, which stays as long as any of them
	var free []float32
	rows := make([]acc.SampleRow, n)
	for i := range rows {
		row := &rows[i]
		copy(row.ID[:], r.Raw(16))
		row.TS, row.LabelTS = r.Varint(), r.Varint()
		row.W = math.Float32frombits(r.Fixed32())
		row.Y = int32(r.Uvarint())
		k := r.Count(4, binenc.MaxItems)
		if k > len(free) {
			free = make([]float32, max(k, min((n-i)*k, together)))
		}
		row.Z, free = free[:k:k], free[k:]
		raw := r.Raw(4 * k)
		if r.Err() != nil {
			return nil
		}
		for j := range row.Z {
			row.Z[j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		}
	}
	return rows
}
