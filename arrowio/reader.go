package arrowio

import (
	"sync"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// reader decodes the batches of one message.
type reader struct {
	d      *Decoder
	plan   *plan
	origin Origin
	kind   Kind
	left   int   // rows that the message may still have
	sparse int64 // values that its slabs with empty rows may still have
	count  int   // record batches so far, those without rows too
	dicts  map[int64]dictionary
	out    []*Batch
}

// scratch is memory that released batches hand to later ones.
type scratch struct {
	batch    Batch
	ids      []ID
	ts       []Time
	label    []int32
	scores   []float32
	features []float32
	served   []float32
	weight   []float32
	model    []int32
	keys     keyColumns
	cols     []*wire.Column
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// keyColumns are the columns that identify a row, as they came.
type keyColumns struct{ id, ts *wire.Column }

// batch decodes a record batch message.
func (r *reader) batch(m wire.Message) error {
	mem := scratches.Get().(*scratch)
	cols := wire.Take(&mem.cols, len(r.plan.schema.Fields))
	clear(cols)
	n, err := r.plan.schema.Batch(m, r.plan.want, r.left, r.d.inflater, func(i int, c *wire.Column) error {
		cols[i] = c
		return nil
	})
	if err != nil || n == 0 {
		clear(cols)
		scratches.Put(mem)
		return err
	}
	r.left -= n
	b := &mem.batch
	*b = Batch{Origin: r.origin, Kind: r.kind, N: n, mem: mem}
	if err := r.fill(b, cols); err != nil {
		b.Release()
		return err
	}
	r.out = append(r.out, b)
	return nil
}

// fill reads the columns of one record batch into b, in an order that lets later ones check earlier ones.
func (r *reader) fill(b *Batch, cols []*wire.Column) error {
	p := r.plan
	col := func(i int) *wire.Column {
		if i < 0 {
			return nil
		}
		return cols[i]
	}
	b.mem.keys = keyColumns{id: col(p.id), ts: col(p.ts)}
	b.keys = &b.mem.keys
	if err := r.ids(b, col(p.id)); err != nil {
		return err
	}
	if err := r.times(b, col(p.ts)); err != nil {
		return err
	}
	if err := r.models(b, col(p.model), col(p.version)); err != nil {
		return err
	}
	if r.kind == Labels {
		return r.labels(b, col(p.label))
	}
	if b.Side = p.side; b.Side != Request {
		if err := r.scores(b, col(p.scores)); err != nil {
			return err
		}
		if err := r.labels(b, col(p.label)); err != nil {
			return err
		}
	}
	if err := r.features(b, col(p.features)); err != nil {
		return err
	}
	if err := r.served(b, col(p.served)); err != nil {
		return err
	}
	if err := r.weights(b, col(p.weight)); err != nil {
		return err
	}
	return r.slices(b, cols)
}
