package pair

import (
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// row is a request or a response as it waits, but for its id's hash, model and time, which its entry has.
type row struct {
	keyType          arrowio.KeyType
	key              []byte
	version          string
	k                int
	probs            bool
	scores, features []float32
	label            int32 // -1: not yet known
	served           float32
	weight           float32 // NaN: the row has none
	slices           []slice
}

// slice is a value that is not null.
type slice struct{ column, value string }

// encoder encodes the rows of a batch.
type encoder struct {
	b       *arrowio.Batch
	keyType arrowio.KeyType
	key     func(i int) []byte
}

func newEncoder(b *arrowio.Batch) encoder {
	e := encoder{b: b}
	e.keyType, e.key = b.Keys()
	return e
}

// append appends row i: u8 type of the id, bytes id, string version, u8 flags (probabilities); uvarint K, its scores,
// uvarint label + 1, served and weight (NaN = none); uvarint D, its features; uvarint slices, each string column and
// value. Floats have 32 bits.
func (e *encoder) append(dst []byte, i int) []byte {
	b := e.b
	dst = binenc.AppendBytes(append(dst, byte(e.keyType)), e.key(i))
	m, _ := b.ModelOf(i)
	dst = append(binenc.AppendString(dst, m.Version), binenc.Flags(b.Probs))
	dst = appendFloats(dst, b.Scores[i*b.K:(i+1)*b.K])
	label := uint64(0)
	if b.Label != nil {
		label = uint64(b.Label[i] + 1)
	}
	dst = binenc.AppendUvarint(dst, label)
	for _, column := range [][]float32{b.Served, b.Weight} {
		v := float32(math.NaN())
		if column != nil {
			v = column[i]
		}
		dst = binenc.AppendFixed32(dst, math.Float32bits(v))
	}
	var features []float32
	if b.D > 0 && b.Features[i*b.D] == b.Features[i*b.D] {
		features = b.Features[i*b.D : (i+1)*b.D]
	}
	dst = appendFloats(dst, features)
	return e.appendSlices(dst, i)
}

func (e *encoder) appendSlices(dst []byte, i int) []byte {
	n := uint64(0)
	for c := range e.b.Slices {
		if e.b.Slices[c].Index[i] >= 0 {
			n++
		}
	}
	dst = binenc.AppendUvarint(dst, n)
	for c := range e.b.Slices {
		if s := &e.b.Slices[c]; s.Index[i] >= 0 {
			dst = binenc.AppendString(binenc.AppendString(dst, s.Name), s.Values[s.Index[i]])
		}
	}
	return dst
}

func appendFloats(dst []byte, v []float32) []byte {
	return binenc.AppendFloats(binenc.AppendUvarint(dst, uint64(len(v))), v)
}

// maxFloats bounds what a state may claim of a row.
const maxFloats = 1 << 24

func readFloats(r *binenc.Reader) []float32 {
	v := make([]float32, r.Count(4, maxFloats))
	r.Floats(v)
	return v
}

// decode reads what append wrote. The id shares the memory of src.
func decode(src []byte) (w row, err error) {
	r := binenc.NewReader(src)
	w.keyType = arrowio.KeyType(r.Int("type of an id", 0, int64(arrowio.UnsignedKey)))
	w.key = r.Bytes(1 << 30)
	w.version = r.String(binenc.MaxName)
	w.probs = r.Byte() == 1
	w.scores = readFloats(&r)
	w.k = len(w.scores)
	w.label = int32(r.Int("label + 1", 0, math.MaxInt32)) - 1
	w.served, w.weight = math.Float32frombits(r.Fixed32()), math.Float32frombits(r.Fixed32())
	w.features = readFloats(&r)
	for range r.Count(2, 1<<12) {
		w.slices = append(w.slices, slice{r.String(binenc.MaxName), r.String(binenc.MaxName)})
	}
	return w, r.Close()
}

// complete gives a response what it lacks and its request has.
func (w *row) complete(request *row) {
	if len(w.features) == 0 {
		w.features = request.features
	}
	if w.weight != w.weight {
		w.weight = request.weight
	}
	for _, s := range request.slices {
		if !w.has(s.column) {
			w.slices = append(w.slices, s)
		}
	}
}

func (w *row) has(column string) bool {
	for _, s := range w.slices {
		if s.column == column {
			return true
		}
	}
	return false
}
