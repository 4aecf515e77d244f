package arrowio

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// maxSplitSchema bounds the schema of a message that is split: every part has a copy.
const maxSplitSchema = 256 << 10

// Splitter splits messages by row. Not safe for concurrent use.
type Splitter struct {
	d   *Decoder
	g   wire.Gather
	to  []int32 // where each row of the message goes
	key [8]byte
}

// NewSplitter makes a splitter; MaxMessageBytes bounds what it makes, too.
func NewSplitter(o Options) *Splitter { return &Splitter{d: NewDecoder(o)} }

// Part is some rows of a message, as a message.
type Part struct {
	Place int
	Rows  int
	Value []byte
}

// Split makes messages of the rows of one: place says for a row's id, nil where the row has none, where the row goes,
// in [0, places), or -1 to leave it out; it is called for one row after the other. The parts come in the order of their
// places, those of one place in the order of the rows; a second one of a place is there only where one would be longer
// than MaxMessageBytes. They depend on the arguments alone. They have the schema with its metadata, and the columns
// that plumbline knows or could know: numbers, booleans, timestamps, text, binary, lists of floats, dictionaries of
// text; those of other types are left out. Where there is no column ts, the parts have one with the time of o. A
// message that Decode would refuse is refused, and so is one whose columns contradict themselves where Decode would not
// look; an error is a *DecodeError. Values are not checked: rows that Decode rejects are parts' rows as any.
func (s *Splitter) Split(
	value []byte, o Origin, kind Kind, places int, place func(id []byte) int,
) (parts []Part, err error) {
	defer func() {
		if r := recover(); r != nil {
			parts, err = nil, wire.Errorf(wire.Panicked, "%v", r)
		}
		var de *DecodeError
		if err != nil && !errors.As(err, &de) {
			parts, err = nil, wire.Errorf(wire.Panicked, "%v", err)
		}
	}()
	bs, err := s.d.Decode(value, o, kind) // everything that it refuses, as it refuses it
	if err != nil {
		return nil, err
	}
	s.to = s.to[:0]
	for _, b := range bs {
		if err == nil {
			err = s.place(b, place)
		}
		b.Release()
	}
	if err != nil {
		return nil, err
	}
	if addsTime := s.d.last.ts < 0 && o.Time > 0; !addsTime && s.goesWhole() {
		return s.undivided(value), nil
	}
	m, err := s.read(value, kind)
	if err != nil {
		return nil, err
	}
	if m.plan.ts < 0 && o.Time > 0 {
		m.time = o.Time
	}
	m.head = wire.AppendSchema(nil, m.schema, m.keep, m.timeName())
	return s.parts(m, places)
}

// goesWhole reports whether the message itself is its only part, or would be: all rows go to one place, and it has no
// column that is left out, or that Decode has not read.
func (s *Splitter) goesWhole() bool {
	p := s.d.last
	return s.d.inflater == nil && p.metaBytes <= maxSplitSchema && !slices.Contains(p.want, false) &&
		!slices.ContainsFunc(s.to, func(to int32) bool { return to != s.to[0] })
}

// undivided is a message whose rows all go to one place, as parts.
func (s *Splitter) undivided(value []byte) []Part {
	if len(s.to) == 0 || s.to[0] < 0 {
		return nil
	}
	return []Part{{int(s.to[0]), len(s.to), slices.Clone(value)}}
}

// parts makes the messages of all places.
func (s *Splitter) parts(m *whole, places int) (parts []Part, err error) {
	at, to := make([][][]int32, places), s.to
	for i := range m.batches {
		n := m.batches[i].n
		if n > len(to) {
			return nil, wire.Errorf(wire.Shape, "more than %d rows", len(s.to))
		}
		m.place(i, at, to[:n])
		to = to[n:]
	}
	for p, rows := range at {
		if rows == nil {
			continue
		}
		if parts, err = s.build(parts, m, p, rows); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// whole is a message taken apart.
type whole struct {
	schema  wire.Message
	plan    *plan
	keep    []bool
	head    []byte // the schema message of its parts
	time    Time   // of a column ts to be added; 0 = none
	batches []splitBatch
}

// splitBatch is a record batch with the dictionaries as they were before it.
type splitBatch struct {
	n     int
	cols  []*wire.Column
	dicts map[int64][][]byte // values; nil = null
}

func (m *whole) timeName() string {
	if m.time != 0 {
		return "ts"
	}
	return ""
}

func (s *Splitter) read(value []byte, kind Kind) (*whole, error) {
	m := &whole{}
	var rest []byte
	var err error
	if m.schema, rest, _, _, err = wire.Next(value); err != nil {
		return nil, err
	}
	if n := len(m.schema.Meta); n > maxSplitSchema {
		return nil, wire.Errorf(wire.TooLarge, "schema of %d bytes in a message to be split, at most %d", n,
			maxSplitSchema)
	}
	if m.plan, err = s.d.planOf(m.schema, kind); err != nil {
		return nil, err
	}
	for i := range m.plan.schema.Fields {
		m.keep = append(m.keep, wire.Gathers(&m.plan.schema.Fields[i]))
	}
	z := s.d.inflater
	if z != nil {
		z.Budget = int64(s.d.opt.MaxInflated)
	}
	dicts, shared := map[int64][][]byte{}, false
	for {
		var b wire.Message
		var end bool
		if b, rest, end, _, err = wire.Next(rest); err != nil || end {
			return m, err
		}
		if b.Header == wire.HeaderDictionary {
			if shared {
				dicts, shared = maps.Clone(dicts), false
			}
			err = s.addDictionary(m, b, dicts)
		} else {
			shared = true
			err = s.batch(m, b, dicts)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Splitter) addDictionary(m *whole, b wire.Message, dicts map[int64][][]byte) error {
	id, delta, c, err := m.plan.schema.Dictionary(b, m.keep, s.d.opt.MaxRows, s.d.inflater)
	if err != nil || c == nil {
		return err
	}
	var values [][]byte
	if delta {
		values = dicts[id]
	}
	if len(values)+c.N > s.d.opt.MaxRows {
		return wire.Errorf(wire.Dictionary, "dictionary %d of %d entries, at most %d", id, len(values)+c.N,
			s.d.opt.MaxRows)
	}
	off, reuse, err := wire.Offsets(c, len(c.Text), s.d.offsets)
	s.d.offsets = reuse
	if err != nil {
		return err
	}
	for i := range c.N {
		v := c.Text[off[i]:off[i+1]:off[i+1]]
		switch {
		case c.IsNull(i):
			v = nil
		case v == nil:
			v = []byte{}
		}
		values = append(values, v)
	}
	dicts[id] = values
	return nil
}

func (s *Splitter) batch(m *whole, b wire.Message, dicts map[int64][][]byte) error {
	cols := make([]*wire.Column, len(m.keep))
	n, err := m.plan.schema.Batch(b, m.keep, s.d.opt.MaxRows, s.d.inflater, func(i int, c *wire.Column) error {
		cols[i] = c
		return nil
	})
	if err == nil && n > 0 {
		m.batches = append(m.batches, splitBatch{n, cols, dicts})
	}
	return err
}

// place appends to s.to where the rows of a batch go.
func (s *Splitter) place(b *Batch, place func(id []byte) int) error {
	id := b.keys.id
	if id == nil {
		for range b.N {
			s.to = append(s.to, int32(place(nil)))
		}
		return nil
	}
	if id.Field.Type == wire.Int {
		ints, err := wire.Values[uint64](id.Field.Name, id.Data, b.N)
		if err != nil {
			return err
		}
		for row, v := range ints {
			var key []byte
			if !id.IsNull(row) {
				key = binary.BigEndian.AppendUint64(s.key[:0], v)
			}
			s.to = append(s.to, int32(place(key)))
		}
		return nil
	}
	off, reuse, err := wire.Offsets(id, len(id.Text), s.d.offsets)
	s.d.offsets = reuse
	if err != nil {
		return err
	}
	for row := range b.N {
		var key []byte
		if !id.IsNull(row) && off[row+1] > off[row] {
			key = id.Text[off[row]:off[row+1]]
		}
		s.to = append(s.to, int32(place(key)))
	}
	return nil
}

// place adds the rows of batch i, which go there, to the lists of their places: at[place][batch].
func (m *whole) place(i int, at [][][]int32, to []int32) {
	for row, p := range to {
		if p < 0 {
			continue
		}
		if at[p] == nil {
			at[p] = make([][]int32, len(m.batches))
		}
		at[p][i] = append(at[p][i], int32(row))
	}
}

// build appends the part of one place, or several, none longer than may be.
func (s *Splitter) build(parts []Part, m *whole, p int, rows [][]int32) ([]Part, error) {
	total := 0
	for _, r := range rows {
		total += len(r)
	}
	value, err := s.encode(m, rows)
	if err != nil {
		return nil, err
	}
	if len(value) <= s.d.opt.MaxMessageBytes {
		return append(parts, Part{p, total, value}), nil
	}
	if total == 1 {
		return nil, wire.Errorf(wire.TooLarge, "a row alone makes a message of %d bytes, at most %d", len(value),
			s.d.opt.MaxMessageBytes)
	}
	first, second := halves(rows, total/2)
	if parts, err = s.build(parts, m, p, first); err != nil {
		return nil, err
	}
	return s.build(parts, m, p, second)
}

// halves cuts lists of rows after the first n rows.
func halves(rows [][]int32, n int) (first, second [][]int32) {
	for _, r := range rows {
		k := min(n, len(r))
		n -= k
		first, second = append(first, r[:k]), append(second, r[k:])
	}
	return first, second
}

// encode makes a stream of rows of the batches.
func (s *Splitter) encode(m *whole, rows [][]int32) ([]byte, error) {
	value := append([]byte(nil), m.head...)
	for i, r := range rows {
		if len(r) == 0 {
			continue
		}
		b := &m.batches[i]
		var change map[int64]*compact
		var err error
		if change, value, err = s.dictionaries(value, b, r); err != nil {
			return nil, err
		}
		s.g.Reset()
		for _, c := range b.cols {
			switch {
			case c == nil:
			case c.Field.Dict != nil:
				err = s.g.Indices(c, r, change[c.Field.Dict.ID].index)
			default:
				err = s.g.Take(c, r)
			}
			if err != nil {
				return nil, err
			}
		}
		if m.time != 0 {
			s.g.Constant(m.time, len(r))
		}
		value = s.g.AppendBatch(value, len(r))
	}
	return wire.AppendEnd(value), nil
}

// compact is what rows use of a dictionary, in the same order: so a new index is never greater than the old one.
type compact struct {
	from   [][]byte
	to     map[uint64]uint64
	values [][]byte
}

// use notes that an index is used.
func (c *compact) use(old uint64) (uint64, error) {
	if old >= uint64(len(c.from)) {
		return 0, wire.Errorf(wire.Dictionary, "index %d in a dictionary of %d", old, len(c.from))
	}
	c.to[old] = 0
	return 0, nil
}

// number gives the indices that are used their new ones.
func (c *compact) number() {
	for i, old := range slices.Sorted(maps.Keys(c.to)) {
		c.to[old] = uint64(i)
		c.values = append(c.values, c.from[old])
	}
}

func (c *compact) index(old uint64) (uint64, error) { return c.to[old], nil }

// dictionaries appends those that rows of a batch need, with the entries that they use.
func (s *Splitter) dictionaries(dst []byte, b *splitBatch, rows []int32) (map[int64]*compact, []byte, error) {
	by := map[int64]*compact{}
	var order []*wire.Column
	for _, c := range b.cols {
		if c == nil || c.Field.Dict == nil {
			continue
		}
		id := c.Field.Dict.ID
		if by[id] == nil {
			from, ok := b.dicts[id]
			if !ok {
				return nil, nil, wire.Errorf(wire.Dictionary, "column %.64q: no dictionary %d before the record batch",
					c.Field.Name, id)
			}
			by[id] = &compact{from: from, to: map[uint64]uint64{}}
			order = append(order, c)
		}
		s.g.Reset() // only what is used matters here
		if err := s.g.Indices(c, rows, by[id].use); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range order {
		id := c.Field.Dict.ID
		by[id].number()
		s.g.Reset()
		s.g.Texts(c.Field, by[id].values)
		dst = s.g.AppendDictionary(dst, id, len(by[id].values))
	}
	return by, dst, nil
}
