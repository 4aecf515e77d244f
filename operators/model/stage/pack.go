package stage

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"
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
	once    sync.Once
	like    []byte
	writers sync.Pool
}

// Pack returns a copy of b in less memory.
func (p *Packer) Pack(b []byte) []byte {
	p.once.Do(func() { p.like = bytes.Clone(b) })
	w, ok := p.writers.Get().(*flate.Writer)
	if !ok {
		var err error
		if w, err = flate.NewWriterDict(nil, flate.BestSpeed+1, p.like); err != nil {
			panic("stage: " + err.Error()) // of the level
		}
	}
	defer p.writers.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(b); err != nil {
		panic("stage: " + err.Error()) // memory takes everything
	}
	if err := w.Close(); err != nil {
		panic("stage: " + err.Error())
	}
	return append(make([]byte, 0, out.Len()), out.Bytes()...)
}

// Unpack returns the original bytes.
func (p *Packer) Unpack(b []byte) []byte {
	out, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(b), p.like))
	if err != nil {
		panic("stage: " + err.Error()) // of our own making
	}
	return out
}
