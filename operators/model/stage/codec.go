package stage

import (
	"encoding/binary"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/sumconfig"
)

// AppendRows appends sampled rows to a checkpoint.
func AppendRows(dst []byte, rows []acc.SampleRow) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(rows)))
	for i := range rows {
		row := &rows[i]
		dst = append(dst, row.ID[:]...)
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, row.TS), row.LabelTS)
		dst = binenc.AppendFixed32(dst, math.Float32bits(row.W))
		dst = binenc.AppendUvarint(dst, uint64(row.Y))
		dst = binenc.AppendUvarint(dst, uint64(len(row.Z)))
		for _, z := range row.Z {
			dst = binenc.AppendFixed32(dst, math.Float32bits(z))
		}
	}
	return dst
}

// RestoreRows reads what AppendRows wrote; errors are those of r. It refuses rows that are not of k classes, because
// scoring them would panic.
func RestoreRows(r *binenc.Reader, k int) []acc.SampleRow {
	n := r.Count(24, binenc.MaxItems)
	if n == 0 {
		return nil
	}
	// Rows share blocks of this many scores. A block stays in memory as long as one of its rows does.
	const blockScores = 4096
	var free []float32
	rows := make([]acc.SampleRow, n)
	for i := range rows {
		row := &rows[i]
		copy(row.ID[:], r.Raw(16))
		row.TS, row.LabelTS = r.Varint(), r.Varint()
		row.W = math.Float32frombits(r.Fixed32())
		row.Y = int32(r.Uvarint())
		if n := r.Count(4, binenc.MaxItems); n != k || row.Y < 0 || int(row.Y) >= k {
			r.Failf("sampled row %d has %d scores and label %d, want K = %d", i, n, row.Y, k)
		}
		if k > len(free) {
			free = make([]float32, max(k, min((n-i)*k, blockScores)))
		}
		row.Z, free = free[:k:k], free[k:]
		raw := r.Raw(4 * k)
		if r.Err() != nil {
			return nil
		}
		for j := range row.Z {
			row.Z[j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		}
	}
	return rows
}

// AppendSet appends a set, or a mark that there is none.
func AppendSet(dst []byte, s *acc.Set) ([]byte, error) {
	if s == nil {
		return binenc.AppendUvarint(dst, 0), nil
	}
	return binenc.AppendBlock(dst, s.AppendBinary)
}

// RestoreSet reads what AppendSet wrote. It returns nil if no set was appended.
func RestoreSet(r *binenc.Reader, d *acc.Decoder) (*acc.Set, error) {
	b := r.Bytes(binenc.MaxBytes)
	if len(b) == 0 {
		return nil, r.Err()
	}
	return d.DecodeSet(b)
}

// CheckShape refuses a set of another configuration, because later sets could not be merged with it.
func CheckShape(s *acc.Set, want acc.Config) error {
	if s == nil {
		return nil
	}
	return sumconfig.Check(s.Settings(), want)
}

// AddBins adds the reliability bins of a set's labelled rows.
func AddBins(dst *[]metric.Bin, n *int64, s *acc.Set, m int) error {
	if s.LabelledRows() == 0 {
		return nil
	}
	b, err := s.Labelled.MSP.Bins(m)
	if err != nil {
		return err
	}
	*dst = PlusBins(*dst, b)
	*n += s.LabelledRows()
	return nil
}
