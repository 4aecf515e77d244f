package stage

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Bins of a pane are kept in fewer bytes than they have in a checkpoint: most rows have weight 1, and then Σ w·c is a
// multiple of 2^-32 (calib/acc) and Σ w·a a number of rows. A pane of one row has 6 bytes a signal.

// binForm says how a bin is kept.
type binForm uint64

const (
	formFull  binForm = iota // varint N; Σw, Σ w·c, Σ w·a as in a checkpoint
	formUnit                 // of rows of weight 1: uvarint N, Σa, 2^32 Σc
	formWrong                // one wrong row of weight 1: 2^32 c - 1 in 4 bytes
	formRight                // one right row
	formBits  = 2
)

// unitsOf returns 2^32 Σc and the form of a bin.
func unitsOf(b *metric.Bin) (units uint64, form binForm) {
	const most = 1 << 53
	x := b.SumC * (1 << 32)
	if b.W != float64(b.N) || b.N < 0 || math.Signbit(b.W) || math.Signbit(x) || math.Signbit(b.SumA) ||
		!(x < most && b.SumA < most) || x != math.Trunc(x) || b.SumA != math.Trunc(b.SumA) {
		return 0, formFull
	}
	units = uint64(x)
	if b.N == 1 && units-1 < 1<<32 && b.SumA <= 1 {
		return units, formWrong + binForm(b.SumA)
	}
	return units, formUnit
}

// packBins appends the bins that have rows: uvarint bins, then of each uvarint 4·(bins without rows before it) + form
// and what the form says; nothing for no bins.
func packBins(dst []byte, bins []metric.Bin) []byte {
	if bins == nil {
		return dst
	}
	dst = binenc.AppendUvarint(dst, uint64(len(bins)))
	next := 0
	for i := range bins {
		b := &bins[i]
		if *b == (metric.Bin{}) {
			continue
		}
		units, form := unitsOf(b)
		dst = binenc.AppendUvarint(dst, uint64(i-next)<<formBits|uint64(form))
		switch form {
		case formFull:
			dst = appendBin(dst, b)
		case formUnit:
			dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(b.N)), uint64(b.SumA))
			dst = binenc.AppendUvarint(dst, units)
		default:
			dst = binenc.AppendFixed32(dst, uint32(units-1))
		}
		next = i + 1
	}
	return dst
}

// appendBin appends a bin as a checkpoint has it.
func appendBin(dst []byte, b *metric.Bin) []byte {
	dst = binenc.AppendVarint(dst, b.N)
	for _, x := range [...]float64{b.W, b.SumC, b.SumA} { // the last bytes of most are 0
		dst = binenc.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(x)))
	}
	return dst
}

// packed reads what packBins wrote; that was in this process, so nothing is checked.
type packed []byte

func (p *packed) uvarint() uint64 {
	x, n := uint64((*p)[0]), 1
	if x >= 0x80 {
		x, n = binary.Uvarint(*p)
	}
	*p = (*p)[n:]
	return x
}

func (p *packed) float() float64 { return math.Float64frombits(bits.ReverseBytes64(p.uvarint())) }

// next returns the next bin and how many without rows are before it.
func (p *packed) next() (skip int, b metric.Bin) {
	head := p.uvarint()
	switch form := binForm(head & (1<<formBits - 1)); form {
	case formFull:
		b.N = binenc.UnZigZag(p.uvarint())
		b.W, b.SumC, b.SumA = p.float(), p.float(), p.float()
	case formUnit:
		b.N = int64(p.uvarint())
		b.W, b.SumA = float64(b.N), float64(p.uvarint())
		b.SumC = float64(p.uvarint()) / (1 << 32)
	default:
		b.N, b.W, b.SumA = 1, 1, float64(form-formWrong)
		b.SumC = (float64(binary.LittleEndian.Uint32(*p)) + 1) / (1 << 32)
		*p = (*p)[4:]
	}
	return int(head >> formBits), b
}

// plusPacked adds packed bins to dst and returns dst. It allocates dst if that is nil and there are bins.
func plusPacked(dst []metric.Bin, data []byte) []metric.Bin {
	if len(data) == 0 {
		return dst
	}
	p := packed(data)
	n := p.uvarint()
	if dst == nil {
		dst = make([]metric.Bin, n)
	}
	for i := 0; len(p) > 0; i++ {
		skip, b := p.next()
		i += skip
		d := &dst[i]
		d.N, d.W, d.SumC, d.SumA = d.N+b.N, d.W+b.W, d.SumC+b.SumC, d.SumA+b.SumA
	}
	return dst
}

// appendBins appends packed bins as a checkpoint has them: uvarint bins, then of each that has rows uvarint bins
// without rows before it, and itself (appendBin).
func appendBins(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	p := packed(data)
	dst = binenc.AppendUvarint(dst, p.uvarint())
	for len(p) > 0 {
		skip, b := p.next()
		dst = appendBin(binenc.AppendUvarint(dst, uint64(skip)), &b)
	}
	return dst
}

// readBins reads what appendBins wrote; errors are those of r. It returns nil for no bins.
func readBins(r *binenc.Reader) []metric.Bin {
	if r.Len() == 0 {
		return nil
	}
	n := r.Int("bins", 1, acc.GridCells)
	if r.Err() != nil {
		return nil
	}
	bins := make([]metric.Bin, n)
	for i := int64(0); r.Len() > 0; i++ {
		if i += r.Int("bins without rows", 0, n); i >= n {
			r.Failf("bin is %d, allowed below %d", i, n)
		}
		rows, w, c, a := r.Varint(), checkpointFloat(r), checkpointFloat(r), checkpointFloat(r)
		if r.Err() != nil {
			return nil
		}
		bins[i] = metric.Bin{N: rows, W: w, SumC: c, SumA: a}
	}
	return bins
}

func checkpointFloat(r *binenc.Reader) float64 {
	return math.Float64frombits(bits.ReverseBytes64(r.Uvarint()))
}
