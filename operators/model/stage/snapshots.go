package stage

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/plumbline/plumbline/internal/binenc"
)

// texts packs snapshots.
var texts dictionary

// Snapshots are texts of snapshots by the names of their windows. They are mostly digits of numbers, so packed they
// take a sixth of their memory.
type Snapshots map[string]snapshot

// snapshot is a text, or it is packed.
type snapshot struct{ text, packed []byte }

// Has reports whether a window has had one.
func (s Snapshots) Has(window string) bool {
	_, ok := s[window]
	return ok
}

// pack packs the snapshot of a window, if it is not.
func (s Snapshots) pack(window string) {
	if text := s[window].text; len(text) > 0 {
		s[window] = snapshot{packed: texts.encode(text, nil)}
	}
}

// Pack packs all of them.
func (s Snapshots) Pack() {
	for window := range s {
		s.pack(window)
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

// Append appends them packed: they need the dictionary of AppendDictionary.
func (s Snapshots) Append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(s)))
	for _, window := range slices.Sorted(maps.Keys(s)) {
		of := s[window]
		if of.text != nil {
			of.packed = texts.encode(of.text, nil)
		}
		dst = binenc.AppendBytes(append(binenc.AppendString(dst, window), packedForm), of.packed)
	}
	return dst
}

// AppendTexts appends their texts.
func (s Snapshots) AppendTexts(dst []byte) []byte {
	all := s.All()
	dst = binenc.AppendUvarint(dst, uint64(len(all)))
	for _, window := range slices.Sorted(maps.Keys(all)) {
		dst = binenc.AppendBytes(append(binenc.AppendString(dst, window), textForm), all[window])
	}
	return dst
}

// Forms of a stored snapshot.
const (
	textForm byte = iota
	packedForm
)

// AppendDictionary appends what the snapshots of this process are packed with; nothing where none is.
func AppendDictionary(dst []byte) []byte {
	if p := texts.first.Load(); p != nil {
		return binenc.AppendBytes(dst, p.like)
	}
	return binenc.AppendBytes(dst, nil)
}

// SnapshotReader reads snapshots that a process has packed, this one or another. The zero value reads texts.
type SnapshotReader struct {
	open *zstd.Decoder
	ours bool // packed with the dictionary of this process
	text []byte
}

// ReadDictionary reads what AppendDictionary wrote.
func ReadDictionary(r *binenc.Reader) *SnapshotReader {
	like := r.Bytes(binenc.MaxBytes)
	if len(like) == 0 {
		return &SnapshotReader{}
	}
	if p := texts.of(like); bytes.Equal(like, p.like) {
		return &SnapshotReader{open: p.open, ours: true}
	}
	return &SnapshotReader{open: opener(bytes.Clone(like))}
}

// Read reads what Append or AppendTexts wrote.
func (p *SnapshotReader) Read(r *binenc.Reader) Snapshots {
	s := Snapshots{}
	for range r.Count(3, binenc.MaxItems) {
		window, packed, b := r.String(binenc.MaxName), r.Byte() != textForm, r.Bytes(binenc.MaxBytes)
		if r.Err() == nil && packed {
			if err := p.unpack(b); err != nil {
				r.Failf("packed snapshot of window %q: %v", window, err)
			}
		}
		switch {
		case r.Err() != nil:
			return s
		case !packed:
			s[window] = snapshot{text: bytes.Clone(b)}
		case p.ours:
			s[window] = snapshot{packed: bytes.Clone(b)}
		default:
			s[window] = snapshot{packed: texts.encode(p.text, nil)}
		}
	}
	return s
}

// unpack sets the text of what is packed.
func (p *SnapshotReader) unpack(packed []byte) (err error) {
	if p.open == nil {
		return errors.New("there is no dictionary")
	}
	p.text, err = p.open.DecodeAll(packed, p.text[:0])
	return err
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
	texts.of(text) // a checkpoint has the dictionary before what is packed
	if s[window].text == nil {
		at := &o.ring[o.next]
		at.of.pack(at.window)
		at.of, at.window = s, window
		o.next = (o.next + 1) % openTexts
	}
	s[window] = snapshot{text: text}
}
