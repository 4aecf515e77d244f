package stage

import (
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Recent holds the reliability bins of the latest label panes. Rules and alarms read their latest rows from it.
type Recent struct {
	Panes []paneBins
}

type paneBins struct {
	end        int64
	rawN, calN int64
	raw, cal   []metric.Bin
}

// Add takes a label pane and drops panes that are not needed to hold the latest keep rows.
func (r *Recent) Add(in *Pane, sc Scored, bins int, keep int64) error {
	if in.Labelled == 0 || keep == 0 {
		return nil
	}
	p := paneBins{end: in.End}
	for _, c := range in.Cells {
		if err := AddBins(&p.raw, &p.rawN, c.Set, bins); err != nil {
			return err
		}
		if s := sc[c.PredictionPane]; s != nil {
			if err := AddBins(&p.cal, &p.calN, s, bins); err != nil {
				return err
			}
		}
	}
	r.Panes = append(r.Panes, p)
	for len(r.Panes) > 1 && r.enough(1, keep) {
		r.Panes = r.Panes[1:]
	}
	return nil
}

// enough reports whether the panes from index i on hold at least the given number of rows of both signals.
func (r *Recent) enough(i int, rows int64) bool {
	var raw, cal int64
	for _, p := range r.Panes[i:] {
		raw += p.rawN
		cal += p.calN
	}
	return raw >= rows && cal >= rows
}

// Last sums the bins of the latest panes: as many panes as it takes to hold the given number of rows of the signal.
func (r *Recent) Last(signal string, rows int64) (bins []metric.Bin, n int64) {
	for i := len(r.Panes) - 1; i >= 0 && n < rows; i-- {
		p := &r.Panes[i]
		b, m := p.cal, p.calN
		if signal == SignalRaw {
			b, m = p.raw, p.rawN
		}
		bins = PlusBins(bins, b)
		n += m
	}
	return bins, n
}

// After sums the bins of all kept panes that end after the time from. The last pane is always included.
func (r *Recent) After(signal string, from int64) (bins []metric.Bin, n int64) {
	for i := len(r.Panes) - 1; i >= 0 && (r.Panes[i].end > from || i == len(r.Panes)-1); i-- {
		p := &r.Panes[i]
		b, m := p.cal, p.calN
		if signal == SignalRaw {
			b, m = p.raw, p.rawN
		}
		bins = PlusBins(bins, b)
		n += m
	}
	return bins, n
}

// PlusBins adds b to dst and returns dst. It allocates dst if that is nil.
func PlusBins(dst, b []metric.Bin) []metric.Bin {
	if dst == nil {
		dst = make([]metric.Bin, len(b))
	}
	for i := range b {
		dst[i].N += b[i].N
		dst[i].W += b[i].W
		dst[i].SumC += b[i].SumC
		dst[i].SumA += b[i].SumA
	}
	return dst
}

// Merge adds the panes of another key.
func (r *Recent) Merge(o *Recent, keep int64) {
	for _, p := range o.Panes {
		i, found := slices.BinarySearchFunc(r.Panes, p.end,
			func(x paneBins, end int64) int { return int(min(max(x.end-end, -1), 1)) })
		if !found {
			r.Panes = slices.Insert(r.Panes, i, p)
			continue
		}
		have := &r.Panes[i]
		have.rawN, have.calN = have.rawN+p.rawN, have.calN+p.calN
		if p.raw != nil {
			have.raw = PlusBins(have.raw, p.raw)
		}
		if p.cal != nil {
			have.cal = PlusBins(have.cal, p.cal)
		}
	}
	for len(r.Panes) > 1 && r.enough(1, keep) {
		r.Panes = r.Panes[1:]
	}
}

// Append appends the latest rows to a checkpoint.
func (r *Recent) Append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(r.Panes)))
	for i := range r.Panes {
		p := &r.Panes[i]
		dst = binenc.AppendVarint(dst, p.end)
		dst = binenc.AppendVarint(dst, p.rawN)
		dst = appendBins(dst, p.raw)
		dst = binenc.AppendVarint(dst, p.calN)
		dst = appendBins(dst, p.cal)
	}
	return dst
}

// Restore reads what Append wrote.
func (r *Recent) Restore(in *binenc.Reader) {
	for range in.Count(5, binenc.MaxItems) {
		var p paneBins
		p.end, p.rawN = in.Varint(), in.Varint()
		p.raw = restoreBins(in)
		p.calN = in.Varint()
		p.cal = restoreBins(in)
		r.Panes = append(r.Panes, p)
	}
}

func appendBins(dst []byte, bins []metric.Bin) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(bins)))
	for _, b := range bins {
		dst = binenc.AppendVarint(dst, b.N)
		dst = binenc.AppendFloat64(binenc.AppendFloat64(binenc.AppendFloat64(dst, b.W), b.SumC), b.SumA)
	}
	return dst
}

func restoreBins(r *binenc.Reader) []metric.Bin {
	n := r.Count(25, binenc.MaxItems)
	if n == 0 {
		return nil
	}
	bins := make([]metric.Bin, n)
	for i := range bins {
		bins[i] = metric.Bin{N: r.Varint(), W: r.Float64(), SumC: r.Float64(), SumA: r.Float64()}
	}
	return bins
}
