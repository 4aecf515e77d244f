package wire

// Dictionary reads a dictionary batch: its id, whether it extends the one before, and its values, which
// are nil where no field with want[i] true, which must be text, has that id. maxLen bounds the entries.
func (s *Schema) Dictionary(
	m Message,
	want []bool,
	maxLen int,
	z *Inflater,
) (id int64, delta bool, c *Column, err error) {
	f := fb{b: m.Meta}
	id = f.int64Field(m.pos, 0)
	data := f.tableField(m.pos, 1)
	delta = f.boolField(m.pos, 2)
	if f.bad || data == 0 {
		return 0, false, nil, Errorf(NotArrow, "dictionary batch is no valid flatbuffer")
	}
	h, err := m.readHeader(data)
	if err != nil {
		return 0, false, nil, err
	}
	field := s.dictField(id, want)
	if field == nil {
		return id, delta, nil, nil
	}
	if h.nNodes != 1 || h.nBufs != 3 {
		return 0, false, nil, Errorf(Dictionary,
			"dictionary %d of text with %d field nodes and %d buffers, want 1 and 3", id, h.nNodes, h.nBufs)
	}
	if h.rows < 0 || h.rows > int64(maxLen) {
		return 0, false, nil, Errorf(Dictionary, "dictionary %d of %d entries, at most %d", id, h.rows, maxLen)
	}
	values := *field
	values.Dict = nil
	c, err = h.column(&values, 0, 0, z)
	if err != nil {
		return 0, false, nil, err
	}
	if int64(c.N) != h.rows {
		return 0, false, nil, Errorf(Dictionary, "dictionary %d: field node of %d rows in a batch of %d", id, c.N,
			h.rows)
	}
	return id, delta, c, nil
}

// dictField is the first wanted top-level field with the dictionary id.
func (s *Schema) dictField(id int64, want []bool) *Field {
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Dict != nil && f.Dict.ID == id && want[i] {
			return f
		}
	}
	return nil
}
