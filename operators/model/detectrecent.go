package model

import "github.com/plumbline/plumbline/calib/metric"

// recent holds the reliability bins of the latest label panes: what rules look back on.
type recent struct {
	panes []paneBins
}

type paneBins struct {
	end        int64
	rawN, calN int64
	raw, cal   []metric.Bin
}

func (r *recent) add(in *paneInput, sc scored, bins int, keep int64) error {
	if in.labelled == 0 || keep == 0 {
		return nil
	}
	p := paneBins{end: in.end}
	for _, c := range in.cells {
		if err := addBins(&p.raw, &p.rawN, c.set, bins); err != nil {
			return err
		}
		if s := sc[c.predictionPane]; s != nil {
			if err := addBins(&p.cal, &p.calN, s, bins); err != nil {
				return err
			}
		}
	}
	r.panes = append(r.panes, p)
	for len(r.panes) > 1 && r.enough(1, keep) {
		r.panes = r.panes[1:]
	}
	return nil
}

// enough reports whether the panes from i on hold at least so many rows of both signals.
func (r *recent) enough(i int, rows int64) bool {
	var raw, cal int64
	for _, p := range r.panes[i:] {
		raw += p.rawN
		cal += p.calN
	}
	return raw >= rows && cal >= rows
}

// last sums the bins of the latest panes with at least so many rows of the signal.
func (r *recent) last(signal string, rows int64) (bins []metric.Bin, n int64) {
	for i := len(r.panes) - 1; i >= 0 && n < rows; i-- {
		p := &r.panes[i]
		b, m := p.cal, p.calN
		if signal == signalRaw {
			b, m = p.raw, p.rawN
		}
		bins = plusBins(bins, b)
		n += m
	}
	return bins, n
}

// after sums the bins of the latest panes that end after a time, the last one at least: as far back as panes are kept.
func (r *recent) after(signal string, from int64) (bins []metric.Bin, n int64) {
	for i := len(r.panes) - 1; i >= 0 && (r.panes[i].end > from || i == len(r.panes)-1); i-- {
		p := &r.panes[i]
		b, m := p.cal, p.calN
		if signal == signalRaw {
			b, m = p.raw, p.rawN
		}
		bins = plusBins(bins, b)
		n += m
	}
	return bins, n
}

func plusBins(dst, b []metric.Bin) []metric.Bin {
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
