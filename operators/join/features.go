package join

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/binenc"
)

// scoreRows has the scores of entries, and their features behind them: as float16 or float32, in as many 4-byte words
// as they need. Rows of one length share slabs, so that a row costs no allocation once the buffer has its working size.
type scoreRows struct {
	featureBytes int // Options.FeatureBytes
	pools        pools
}

// words returns how many words the scores and features of an entry need.
func (s *scoreRows) words(p *entry) int { return int(p.k) + s.featureWords(int(p.d)) }

func (s *scoreRows) featureWords(d int) int { return (d*s.featureBytes + 3) / 4 }

func (s *scoreRows) row(p *entry) []float32 { return s.kept(p)[:p.k] }

// kept returns the scores of an entry, followed by its features.
func (s *scoreRows) kept(p *entry) []float32 {
	n := s.words(p)
	return s.pools.of(n).row(p.slot)
}

// appendScores appends f32 served, f32 weight, uvarint K, K times f32.
func (s *scoreRows) appendScores(b []byte, p *entry) []byte {
	b = binenc.AppendFixed32(b, math.Float32bits(p.served))
	b = binenc.AppendFixed32(b, math.Float32bits(p.weight))
	b = binenc.AppendUvarint(b, uint64(p.k))
	return binenc.AppendFloats(b, s.row(p))
}

// featuresOf returns how many features of row i are kept: none if they are not configured, or null.
func (s *scoreRows) featuresOf(b *arrowio.Batch, i int) int {
	if s.featureBytes == 0 || b.D == 0 || b.Features[i*b.D] != b.Features[i*b.D] {
		return 0
	}
	return b.D
}

// halves views words as float16 numbers.
func halves(words []float32, d int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(words))), d)
}

// setFeatures copies the features of row i. A value too large for a float16 becomes infinite.
func (s *scoreRows) setFeatures(p *entry, b *arrowio.Batch, i int) {
	if p.d > 0 {
		s.putFeatures(p, b.Features[i*b.D:(i+1)*b.D])
	}
}

func (s *scoreRows) putFeatures(p *entry, x []float32) {
	words := s.kept(p)[p.k:]
	if s.featureBytes == 4 {
		copy(words, x)
		return
	}
	h := halves(words, len(x))
	half.Encode(h, x)
	if len(x)%2 == 1 {
		halves(words, len(x)+1)[len(x)] = 0 // the row may have been another's
	}
}

// addFeatures appends the features of an entry.
func (s *scoreRows) addFeatures(dst []float32, p *entry) []float32 {
	if p.d == 0 {
		return dst
	}
	words, n, d := s.kept(p)[p.k:], len(dst), int(p.d)
	if s.featureBytes == 4 {
		return append(dst, words[:d]...)
	}
	if cap(dst) < n+d {
		dst = append(dst, make([]float32, d)...)
	} else {
		dst = dst[:n+d]
	}
	kernel.HalfToFloat32(dst[n:], halves(words, d))
	return dst
}

// appendFeatures appends uvarint D, u8 bytes of a feature, the features; nothing where the entry has none.
func (s *scoreRows) appendFeatures(dst []byte, p *entry) []byte {
	if p.d == 0 {
		return dst
	}
	dst = append(binenc.AppendUvarint(dst, uint64(p.d)), byte(s.featureBytes))
	words := s.kept(p)[p.k:]
	if s.featureBytes == 2 {
		for _, h := range halves(words, int(p.d)) {
			dst = binary.LittleEndian.AppendUint16(dst, h)
		}
		return dst
	}
	return binenc.AppendFloats(dst, words)
}

// readFeatures reads what appendFeatures wrote, if the flags say that it is there.
func readFeatures(in *binenc.Reader, flags byte) (d, width int, raw []byte) {
	if flags&flagFeatures == 0 {
		return 0, 0, nil
	}
	d = in.Count(2, 1<<24)
	if width = int(in.Byte()); width != 2 && width != 4 || d == 0 {
		in.Failf("%d features of %d bytes, allowed are 2 and 4", d, width)
		return 0, 0, nil
	}
	return d, width, in.Raw(d * width)
}

// restoreFeatures gives an entry the features that readFeatures has read, converted to the configured width.
func (s *scoreRows) restoreFeatures(p *entry, width int, raw []byte) {
	if p.d == 0 {
		return
	}
	if words := s.kept(p)[p.k:]; width == 2 && s.featureBytes == 2 {
		for j, h := 0, halves(words, 2*len(words)); j < len(h); j++ {
			if h[j] = 0; j < int(p.d) {
				h[j] = binary.LittleEndian.Uint16(raw[2*j:])
			}
		}
		return
	}
	x := make([]float32, p.d)
	for j := range x {
		if width == 4 {
			x[j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		} else {
			half := [1]uint16{binary.LittleEndian.Uint16(raw[2*j:])}
			kernel.HalfToFloat32(x[j:j+1], half[:])
		}
	}
	s.putFeatures(p, x)
}
