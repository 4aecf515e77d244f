package stage

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// keyPacker packs keys that are new.
var keyPacker Packer

// Rest packs the latest rows, the sample and the snapshots of a key that is new until they are needed.
func (k *Key) Rest() {
	if !k.IsNew() || k.packed != nil {
		return
	}
	b := binenc.AppendBytes(nil, k.Recent.Append(nil))
	b = binenc.AppendBytes(b, AppendRows(nil, k.Sample))
	k.packed = keyPacker.Pack(k.appendSnapshots(b))
	k.Recent, k.Sample, k.Snapshots = Recent{}, nil, nil
}

// Wake brings back what Rest has packed. Whoever reads these fields between panes calls it first.
func (k *Key) Wake() {
	if k.packed == nil {
		return
	}
	r := binenc.NewReader(keyPacker.Unpack(k.packed))
	k.packed = nil
	recent, rows := binenc.NewReader(r.Bytes(binenc.MaxBytes)), binenc.NewReader(r.Bytes(binenc.MaxBytes))
	k.Recent.Restore(&recent)
	k.Sample = RestoreRows(&rows)
	k.RestoreSnapshots(&r)
	for _, in := range []*binenc.Reader{&recent, &rows, &r} {
		if err := in.Close(); err != nil {
			panic("stage: " + err.Error()) // what this process has packed itself
		}
	}
}

// AppendKept appends the latest rows and the sample to a checkpoint, then what between appends, then the snapshots.
func (k *Key) AppendKept(dst []byte, between func([]byte) []byte) []byte {
	if k.packed == nil {
		dst = AppendRows(k.Recent.Append(dst), k.Sample)
		return k.appendSnapshots(between(dst))
	}
	r := binenc.NewReader(keyPacker.Unpack(k.packed))
	dst = append(dst, r.Bytes(binenc.MaxBytes)...)
	dst = append(dst, r.Bytes(binenc.MaxBytes)...)
	return append(between(dst), r.Raw(r.Len())...)
}

func (k *Key) appendSnapshots(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(k.Snapshots)))
	for _, name := range slices.Sorted(maps.Keys(k.Snapshots)) {
		dst = binenc.AppendBytes(binenc.AppendString(dst, name), k.Snapshots[name])
	}
	return dst
}

// RestoreSnapshots reads the snapshots that AppendKept wrote.
func (k *Key) RestoreSnapshots(r *binenc.Reader) {
	k.Snapshots = map[string][]byte{}
	for range r.Count(2, binenc.MaxItems) {
		name := r.String(binenc.MaxName)
		k.Snapshots[name] = slices.Clone(r.Bytes(binenc.MaxBytes))
	}
}

// Remembered returns the latest snapshots; it holds as much memory as the key does until the function is called.
func (k *Key) Remembered() func() [][]byte {
	held := Key{packed: k.packed, Snapshots: maps.Clone(k.Snapshots)}
	return func() [][]byte {
		held.Wake()
		return slices.Collect(maps.Values(held.Snapshots))
	}
}
