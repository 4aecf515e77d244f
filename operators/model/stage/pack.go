package stage

import (
	"bytes"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
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
type dictionary struct {
	once sync.Once
	pack *zstd.Encoder
	open *zstd.Decoder
}

// begin takes b as the dictionary.
func (p *dictionary) begin(b []byte) {
	const id, window = 1, 128 << 10
	like := bytes.Clone(b)
	var err error
	if p.pack, err = zstd.NewWriter(nil, zstd.WithEncoderDictRaw(id, like), zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true)); err != nil {
		panic("stage: " + err.Error()) // of the options
	}
	if p.open, err = zstd.NewReader(nil, zstd.WithDecoderDictRaw(id, like), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true)); err != nil {
		panic("stage: " + err.Error())
	}
}

// Pack returns a copy of b in less memory.
func (p *Packer) Pack(b []byte) []byte {
	size := sized(len(b))
	d := &p.bySize[size]
	d.once.Do(func() { d.begin(b) })
	return bytes.Clone(d.pack.EncodeAll(b, []byte{byte(size)}))
}

// Unpack returns the original bytes.
func (p *Packer) Unpack(b []byte) []byte {
	out, err := p.bySize[b[0]].open.DecodeAll(b[1:], nil)
	if err != nil {
		panic("stage: " + err.Error()) // of our own making
	}
	return out
}
