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

// waiting is what waits, in order of arrival.
func (p *Operator) waiting() []*entry {
	all := slices.Concat(p.queues[0], p.queues[1])
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// AppendState appends uvarint rows, in order of arrival: id (16 bytes), string model, varint event time, u8 flags
// (a request), bytes the row.
func (p *Operator) AppendState(dst []byte) ([]byte, error) {
	all := p.waiting()
	dst = binenc.AppendUvarint(dst, uint64(len(all)))
	for _, e := range all {
		dst = binenc.AppendString(append(dst, e.key.id[:]...), e.key.model)
		dst = append(binenc.AppendVarint(dst, e.ts), binenc.Flags(e.request))
		dst = binenc.AppendBytes(dst, e.row)
	}
	return dst, nil
}

// RestoreState implements pipeline.State.
func (p *Operator) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	p.by, p.queues, p.bytes = map[key]*entry{}, [2]queue{}, 0
	for range r.Count(20, 1<<31) {
		e := &entry{}
		copy(e.key.id[:], r.Raw(len(e.key.id)))
		e.key.model, e.ts = r.String(binenc.MaxName), r.Varint()
		e.request = r.Byte() == 1
		e.row = bytes.Clone(r.Bytes(1 << 30))
		if r.Err() != nil {
			break
		}
		if _, err := decode(e.row); err != nil {
			return err
		}
		p.hold(e)
	}
	return r.Close()
}

// hold lets a row wait that is counted already.
func (p *Operator) hold(e *entry) {
	p.seq++
	e.seq = p.seq
	if e.older = p.by[e.key]; e.older != nil {
		e.older.newer = e
	}
	p.by[e.key] = e
	q, _ := p.queueOf(e)
	heap.Push(q, e)
	p.bytes += e.bytes()
}

// takeOver lets what waits in another shard wait here (pipeline.Stage). Both sides of a key were in one shard.
func (p *Operator) takeOver(old *Operator, mine func(arrowio.ID) bool) error {
	for _, e := range old.waiting() {
		if !mine(e.key.id) {
			continue
		}
		p.counts.Add(pipeline.CountMovedHalves, 1)
		p.add(&entry{key: e.key, ts: e.ts, request: e.request, row: e.row})
	}
	return nil
}
