package pair

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Stage is the operator as a shard registers it.
func (p *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "pair", Operator: p, Version: 1, Release: p.release,
		Take: func(from pipeline.Operator, mine func(arrowio.ID) bool) error {
			return p.takeOver(from.(*Operator), mine)
		}}
}

// State implements pipeline.Operator: everything that waits.
func (p *Operator) State() pipeline.State { return p }

// waiting is what waits of some kinds, in order of seq.
func (p *Operator) waiting(of ...kind) []*entry {
	var all []*entry
	for _, k := range of {
		all = append(all, p.queues[k]...)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// AppendState appends rows that have met none, in order of arrival; then, if there are any, requests that have met, in
// the order in which they did. Both are uvarint rows, each id (16 bytes), string model, varint event time, u8 flags (a
// request), bytes the row. A state of the time before requests stayed ends behind the first.
func (p *Operator) AppendState(dst []byte) ([]byte, error) {
	dst = appendEntries(dst, p.waiting(response, request))
	if len(p.queues[met]) > 0 {
		dst = appendEntries(dst, p.waiting(met))
	}
	return dst, nil
}

func appendEntries(dst []byte, all []*entry) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(all)))
	for _, e := range all {
		dst = binenc.AppendString(append(dst, e.key.id[:]...), e.key.model)
		dst = append(binenc.AppendVarint(dst, e.ts), binenc.Flags(e.kind != response))
		dst = binenc.AppendBytes(dst, e.row)
	}
	return dst
}

// RestoreState implements pipeline.State.
func (p *Operator) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	p.clear()
	err := p.restore(&r, request)
	if err == nil && r.Err() == nil && r.Len() > 0 {
		err = p.restore(&r, met)
	}
	if err != nil {
		return err
	}
	return r.Close()
}

// restore reads rows whose requests are of one kind.
func (p *Operator) restore(r *binenc.Reader, requests kind) error {
	for range r.Count(20, 1<<31) {
		e := &entry{}
		copy(e.key.id[:], r.Raw(len(e.key.id)))
		e.key.model, e.ts = r.String(binenc.MaxName), r.Varint()
		if r.Byte() == 1 {
			e.kind = requests
		}
		e.row = bytes.Clone(r.Bytes(1 << 30))
		if r.Err() != nil {
			break
		}
		if _, err := decode(e.row); err != nil {
			return err
		}
		p.hold(e)
	}
	return nil
}

// hold lets a row wait that is counted already.
func (p *Operator) hold(e *entry) {
	p.seq++
	e.seq = p.seq
	newest := p.newest(e)
	if e.older = newest[e.key]; e.older != nil {
		e.older.newer = e
	}
	newest[e.key] = e
	heap.Push(&p.queues[e.kind], e)
	p.bytes += e.bytes()
}

// takeOver lets what waits in another shard wait here (pipeline.Stage). Both sides of a key were in one shard. A met
// request stays in the counts of that shard.
func (p *Operator) takeOver(old *Operator, mine func(arrowio.ID) bool) error {
	for _, e := range slices.Concat(old.waiting(response, request), old.waiting(met)) {
		if !mine(e.key.id) {
			continue
		}
		if e.kind != met {
			p.counts.Add(pipeline.CountMovedHalves, 1)
		}
		p.add(&entry{key: e.key, ts: e.ts, kind: e.kind, row: e.row})
	}
	return nil
}
