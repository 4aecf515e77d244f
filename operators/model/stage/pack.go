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

// encode appends b in less memory to a few bytes.
func (p *dictionary) encode(b, to []byte) []byte {
	p.once.Do(func() { p.begin(b) })
	return bytes.Clone(p.pack.EncodeAll(b, to))
}

// decode returns what encode was given.
func (p *dictionary) decode(b []byte) []byte {
	out, err := p.open.DecodeAll(b, nil)
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

// texts packs snapshots and alerts.
var texts dictionary

// Snapshots are texts of snapshots by the names of their windows. They are mostly digits of numbers, so packed they
// take a sixth of their memory.
type Snapshots map[string]snapshot

// snapshot is a text, or it is packed.
type snapshot struct{ text, packed []byte }

// Put takes the snapshot of a window, as published.
func (s Snapshots) Put(window string, text []byte) {
	s[window] = snapshot{packed: texts.encode(text, nil)}
}

// Has reports whether a window has had one.
func (s Snapshots) Has(window string) bool {
	_, ok := s[window]
	return ok
}

// pack packs the snapshot of a window, if it is not.
func (s Snapshots) pack(window string) {
	if text := s[window].text; text != nil {
		s.Put(window, text)
	}
}

// All returns the texts.
func (s Snapshots) All() map[string][]byte {
	out := make(map[string][]byte, len(s))
	for window, of := range s {
		if out[window] = of.text; of.text == nil {
			out[window] = texts.decode(of.packed)
		}
	}
	return out
}

// openTexts is how many snapshots of a task are not packed: where few keys have rows, each is replaced soon.
const openTexts = 12

// openSnapshots are the snapshots that are not packed, in a ring.
type openSnapshots struct {
	ring [openTexts]struct {
		of     Snapshots
		window string
	}
	next int
}

// put takes the snapshot of a window. The one that has been open for longest may be packed for it.
func (o *openSnapshots) put(s Snapshots, window string, text []byte) {
	if s[window].text == nil {
		at := &o.ring[o.next]
		at.of.pack(at.window)
		at.of, at.window = s, window
		o.next = (o.next + 1) % openTexts
	}
	s[window] = snapshot{text: text}
}
