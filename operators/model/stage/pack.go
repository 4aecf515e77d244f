package stage

import (
	"bytes"
	"math/bits"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/plumbline/plumbline/internal/binenc"
)

// NewRows is the number of labelled rows until which a key is new. There may be many new keys, by mistake or by malice,
// so what a new key keeps is packed while nothing needs it.
const NewRows = 100

// IsNew reports whether the key is one whose state is packed: a model version with few labelled rows. Slices have a
// bound of their own.
func (k *Key) IsNew() bool { return k.Slice == "" && k.Labelled < NewRows }

// Packer compresses many byte strings of one kind. The zero value is ready. Packed bytes are for this process only.
type Packer struct{ bySize [3]dictionary }

// sized returns the dictionary for strings of n bytes: one of a key's first pane has little in common with one of its
// hundredth.
func sized(n int) int { return min(max(bits.Len(uint(n))-12, 0), 4) / 2 } // below 8 KiB, below 32 KiB, above

// dictionary packs strings of about one size: the first one is the dictionary of the others.
type dictionary struct{ first atomic.Pointer[packing] }

// packing packs what is like something.
type packing struct {
	like []byte
	pack *zstd.Encoder
	open *zstd.Decoder
}

// dictionaryID is of every dictionary.
const dictionaryID = 1

func newPacking(b []byte) *packing {
	const window = 128 << 10
	like := bytes.Clone(b)
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionaryID, like), zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("stage: " + err.Error()) // of the options
	}
	return &packing{like, pack, opener(like)}
}

// opener opens what was packed with a dictionary.
func opener(like []byte) *zstd.Decoder {
	open, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionaryID, like), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(binenc.MaxBytes))
	if err != nil {
		panic("stage: " + err.Error()) // of the options
	}
	return open
}

// of returns the packing of all strings; b is like them, if this is the first.
func (p *dictionary) of(b []byte) *packing {
	if p.first.Load() == nil {
		p.first.CompareAndSwap(nil, newPacking(b))
	}
	return p.first.Load()
}

// encode appends b in less memory to a few bytes.
func (p *dictionary) encode(b, to []byte) []byte { return bytes.Clone(p.of(b).pack.EncodeAll(b, to)) }

// decode returns what encode was given.
func (p *dictionary) decode(b []byte) []byte {
	out, err := p.first.Load().open.DecodeAll(b, nil)
	if err != nil {
		panic("stage: " + err.Error()) // of our own making
	}
	return out
}

// Pack returns a copy of b in less memory.
func (p *Packer) Pack(b []byte) []byte {
	size := sized(len(b))
	return p.bySize[size].encode(b, []byte{byte(size)})
}

// Unpack returns the original bytes.
func (p *Packer) Unpack(b []byte) []byte { return p.bySize[b[0]].decode(b[1:]) }
