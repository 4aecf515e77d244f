package stage

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Recent holds the reliability bins of the latest label panes. Rules and alarms read their latest rows from it. A key
// with a row a pane has thousands of them, so all but the last few are packed in blocks.
type Recent struct {
	blocks  []paneBlock
	panes   []paneBins
	gone    int         // panes before the first block that this process has forgotten
	sums    []recentSum // what Last was asked for
	waiting Slots[paneSums]
}

// paneSums are the bins of a label pane, or of predictions that are not old enough yet.
type paneSums struct {
	rawN, calN int64
	raw, cal   []metric.Bin
}

// paneBins are the packed bins of a label pane.
type paneBins struct {
	end        int64
	rawN, calN int64
	raw, cal   []byte
}

// of returns the packed bins of a signal and their rows.
func (p *paneBins) of(signal string) (packed []byte, rows int64) {
	if signal == SignalRaw {
		return p.raw, p.rawN
	}
	return p.cal, p.calN
}

// pack sets the bins; nil for a signal without rows.
func (p *paneBins) pack(raw, cal []metric.Bin) {
	packed := packBins(make([]byte, 0, 256), raw)
	n := len(packed)
	packed = slices.Clone(packBins(packed, cal))
	p.raw, p.cal = packed[:n:n], packed[n:]
}

// Add takes a label pane, or of a Maturity that is on the predictions that it makes old enough, and drops panes that
// are not needed to hold the latest keep rows. It returns how many labelled rows are new.
func (r *Recent) Add(in *Pane, m Maturity, bins int, keep int64) (rows int64, err error) {
	if keep == 0 {
		return 0, nil
	}
	for _, c := range in.Cells {
		if c.Set.LabelledRows() == 0 {
			continue
		}
		at := in.Index
		if m.On() {
			at = c.PredictionPane
		}
		sums := r.waiting.At(m, at, in.Index)
		if sums == nil {
			continue
		}
		if err := AddBins(&sums.raw, &sums.rawN, c.Set, bins); err != nil {
			return 0, err
		}
		if s := in.Scored[c.PredictionPane]; s != nil {
			if err := AddBins(&sums.cal, &sums.calN, s, bins); err != nil {
				return 0, err
			}
		}
	}
	for _, slot := range r.waiting.Take(m, in.Index) {
		p := paneBins{end: (slot.Due + 1) * m.Pane, rawN: slot.Sum.rawN, calN: slot.Sum.calN}
		p.pack(slot.Sum.raw, slot.Sum.cal)
		r.push(p)
		rows += p.rawN
	}
	r.forget(keep)
	return rows, nil
}

// Open reports whether rows wait until they are old enough.
func (r *Recent) Open() bool { return r.waiting.Len() > 0 }

// push takes a pane after the others.
func (r *Recent) push(p paneBins) {
	r.panes = append(r.panes, p)
	for i := len(r.sums) - 1; i >= 0; i-- {
		if !r.sums[i].follow(r) {
			r.sums = slices.Delete(r.sums, i, i+1)
		}
	}
	if len(r.panes) == 2*panesOfBlock {
		r.blocks = append(r.blocks, newPaneBlock(r.panes[:panesOfBlock]))
		r.panes = slices.Delete(r.panes, 0, panesOfBlock)
	}
}

// RecentOfRows is the Recent of a key without calibrators whose labelled rows are those, in the order in which their
// label panes, of that length, were processed.
func RecentOfRows(k *Key, rows []acc.SampleRow, pane int64, bins int) (*Recent, error) {
	c := k.Version.Shape
	c.K, c.SampleRows, c.SampleBytes = k.K, 0, 0
	set, err := acc.New(c)
	if err != nil {
		return nil, err
	}
	recent, scorer := &Recent{}, NewScorer(k.K)
	paneOf := func(row *acc.SampleRow) int64 { return pipeline.PaneIndex(row.LabelTS, pane) }
	for len(rows) > 0 {
		n, index := 0, paneOf(&rows[0])
		set.Reset()
		for ; n < len(rows) && paneOf(&rows[n]) == index; n++ {
			if err := scorer.Add(set, nil, &rows[n]); err != nil {
				return nil, err
			}
		}
		p := paneBins{end: (index + 1) * pane, calN: int64(n)}
		var sums []metric.Bin
		if err := AddBins(&sums, &p.rawN, set, bins); err != nil {
			return nil, err
		}
		p.pack(sums, sums)
		recent.push(p)
		rows = rows[n:]
	}
	return recent, nil
}

// forget drops the panes that are not needed to hold the latest keep rows of both signals.
func (r *Recent) forget(keep int64) {
	var raw, cal int64
	first := func(panes []paneBins) int {
		for i := len(panes) - 1; i >= 0; i-- {
			raw, cal = raw+panes[i].rawN, cal+panes[i].calN
			if raw >= keep && cal >= keep {
				return i
			}
		}
		return -1
	}
	if i := first(r.panes); i >= 0 {
		r.gone += panesOfBlock*len(r.blocks) + i
		r.blocks, r.panes, r.sums = nil, slices.Delete(r.panes, 0, i), nil
		return
	}
	for j := len(r.blocks) - 1; j >= 0; j-- {
		b := &r.blocks[j]
		if raw+b.rawN < keep || cal+b.calN < keep {
			raw, cal = raw+b.rawN, cal+b.calN
			continue
		}
		b.skip(first(b.panes()))
		r.blocks, r.gone = slices.Delete(r.blocks, 0, j), r.gone+panesOfBlock*j
		// Nothing is left to take off a sum of more rows than are kept.
		oldest := r.gone + r.blocks[0].forgotten
		r.sums = slices.DeleteFunc(r.sums, func(s recentSum) bool { return s.first < oldest })
		return
	}
}

// latest yields the panes, the latest first.
func (r *Recent) latest(yield func(*paneBins) bool) {
	upTo := func(panes []paneBins) bool {
		for i := len(panes) - 1; i >= 0; i-- {
			if !yield(&panes[i]) {
				return false
			}
		}
		return true
	}
	if !upTo(r.panes) {
		return
	}
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if !upTo(r.blocks[i].panes()) {
			return
		}
	}
}

// all returns the panes, the oldest first.
func (r *Recent) all() []paneBins {
	panes := make([]paneBins, 0, panesOfBlock*len(r.blocks)+len(r.panes))
	for i := range r.blocks {
		panes = append(panes, r.blocks[i].panes()...)
	}
	return append(panes, r.panes...)
}

// Last sums the bins of the latest panes: as many panes as it takes to hold the given number of rows of the signal.
func (r *Recent) Last(signal string, rows int64) (bins []metric.Bin, n int64) {
	if s := r.sumOf(signal, rows); s != nil && s.filled > 0 {
		return slices.Clone(s.bins), s.n
	}
	for p := range r.latest {
		if n >= rows {
			break
		}
		packed, m := p.of(signal)
		bins = plusPacked(bins, packed)
		n += m
	}
	return bins, n
}

// After sums the bins of all kept panes that end after the time from. The last pane is always included. earlier reports
// whether a pane is kept that ends by from: then no pane after from was dropped.
func (r *Recent) After(signal string, from int64) (bins []metric.Bin, n int64, earlier bool) {
	last := true
	for p := range r.latest {
		if p.end <= from && !last {
			return bins, n, true
		}
		packed, m := p.of(signal)
		bins = plusPacked(bins, packed)
		n, last = n+m, false
	}
	return bins, n, false
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
	panes := r.all()
	for _, p := range o.all() {
		i, found := slices.BinarySearchFunc(panes, p.end,
			func(x paneBins, end int64) int { return cmp.Compare(x.end, end) })
		if !found {
			panes = slices.Insert(panes, i, p)
			continue
		}
		have := &panes[i]
		var sums [2][]metric.Bin
		for j, signal := range []string{SignalRaw, SignalCalibrated} {
			a, _ := have.of(signal)
			b, _ := p.of(signal)
			sums[j] = plusPacked(plusPacked(nil, a), b)
		}
		have.rawN, have.calN = have.rawN+p.rawN, have.calN+p.calN
		have.pack(sums[0], sums[1])
	}
	*r = Recent{waiting: r.waiting}
	for _, p := range panes {
		r.push(p)
	}
	r.forget(keep)
	r.waiting.Merge(&o.waiting, func(to, from *paneSums) {
		to.raw, to.cal = PlusBins(to.raw, from.raw), PlusBins(to.cal, from.cal)
		to.rawN, to.calN = to.rawN+from.rawN, to.calN+from.calN
	})
}

// Append appends the latest rows to a checkpoint, then what waits.
func (r *Recent) Append(dst []byte) []byte {
	panes := r.all()
	dst = binenc.AppendUvarint(dst, uint64(len(panes)))
	var bins []byte
	for i := range panes {
		p := &panes[i]
		dst = binenc.AppendVarint(binenc.AppendVarint(binenc.AppendVarint(dst, p.end), p.rawN), p.calN)
		for _, packed := range [...][]byte{p.raw, p.cal} {
			bins = appendBins(bins[:0], packed)
			dst = binenc.AppendBytes(dst, bins)
		}
	}
	return r.waiting.Append(dst, func(dst []byte, s *paneSums) []byte {
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, s.rawN), s.calN)
		for _, sums := range [...][]metric.Bin{s.raw, s.cal} {
			bins = appendBins(bins[:0], packBins(nil, sums))
			dst = binenc.AppendBytes(dst, bins)
		}
		return dst
	})
}

// Restore reads what Append wrote.
func (r *Recent) Restore(in *binenc.Reader) {
	read := func() (s paneSums) {
		s.rawN, s.calN = in.Varint(), in.Varint()
		for _, sums := range [...]*[]metric.Bin{&s.raw, &s.cal} {
			bins := binenc.NewReader(in.Bytes(binenc.MaxBytes))
			if *sums = readBins(&bins); bins.Close() != nil {
				in.Failf("bins of a pane: %v", bins.Err())
			}
		}
		return s
	}
	for range in.Count(5, binenc.MaxItems) {
		end, s := in.Varint(), read()
		p := paneBins{end: end, rawN: s.rawN, calN: s.calN}
		p.pack(s.raw, s.cal)
		r.push(p)
	}
	r.waiting.Restore(in, func(s *paneSums) { *s = read() })
}
