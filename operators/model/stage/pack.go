package stage

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// NewRows is the number of labelled rows until which a key is new. There may be many new keys, by mistake or by malice,
// so what a new key keeps is packed while nothing needs it.
const NewRows = 100

// IsNew reports whether the key is one whose state is packed: a model version with few labelled rows. Slices have a
// bound of their own.
func (k *Key) IsNew() bool { return k.Slice == "" && k.Labelled < NewRows }

// Packer compresses many byte strings of one kind: the first one is the dictionary of the others. The zero value is
// ready. Packed bytes are for this process only.
type Packer struct {
	once sync.Once
	pack *zstd.Encoder
	open *zstd.Decoder
}

// begin takes b as the dictionary.
func (p *Packer) begin(b []byte) {
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
	p.once.Do(func() { p.begin(b) })
	return bytes.Clone(p.pack.EncodeAll(b, nil))
}

// Unpack returns the original bytes.
func (p *Packer) Unpack(b []byte) []byte {
	out, err := p.open.DecodeAll(b, nil)
	if err != nil {
		panic("stage: " + err.Error()) // of our own making
	}
	return out
}
