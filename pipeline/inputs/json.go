package inputs

import (
	"bytes"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// jsonDecoder reads JSON: an object is a document, and so is each item of a list, or each of several values one after
// the other.
type jsonDecoder struct {
	complete
	s    scanner
	rest []byte // tensors as bytes, behind the JSON
}

func (d *jsonDecoder) decode(r *Record, c *collector) error { return d.all(unframed(r.Value), c) }

// all reads the documents of a value.
func (d *jsonDecoder) all(value []byte, c *collector) error {
	d.s = scanner{b: bytes.TrimPrefix(value, []byte("\ufeff")), buf: d.s.buf}
	for d.s.peek() != 0 || d.s.i < len(d.s.b) {
		if err := d.documents(c); err != nil {
			return err
		}
	}
	return nil
}

func (d *jsonDecoder) documents(c *collector) error {
	if c.root.each == nil && d.s.peek() == '[' && len(c.root.items) == 0 {
		return d.s.array(func(int) error { return d.document(c) })
	}
	return d.document(c)
}

func (d *jsonDecoder) document(c *collector) error {
	if err := c.begin(); err != nil {
		return err
	}
	if err := d.value(c, c.root); err != nil {
		return err
	}
	return c.end()
}

// value reads what lies at a node.
func (d *jsonDecoder) value(c *collector, n *node) error {
	s := &d.s
	at := s.peek()
	switch {
	case len(n.columns) > 0:
		return d.columns(c, n)
	case at == 'n': // null, or an error
		_, err := s.word()
		return err
	case n.tensors && at == '[':
		return s.array(func(int) error { return d.output(c, n) })
	case n.each != nil && at == '{': // a tensor by itself
		t, err := readTensor(s)
		if err == nil {
			err = t.flat()
		}
		if err != nil {
			return err
		}
		return t.set(c, n)
	case n.each != nil:
		if at != '[' {
			return d.wrong(c, n, "a list")
		}
		if err := c.beginList(n); err != nil {
			return err
		}
		err := s.array(func(int) error {
			if err := d.value(c, n.each); err != nil {
				return err
			}
			return c.endItem(n)
		})
		c.endList()
		return err
	case n.items != nil:
		if at != '[' {
			return d.wrong(c, n, "a list")
		}
		return s.array(func(i int) error {
			if kid := n.items[i]; kid != nil {
				return d.value(c, kid)
			}
			return s.skip()
		})
	case at != '{':
		return d.wrong(c, n, "an object")
	}
	place := 0
	return s.object(func(name []byte) error {
		kid := n.kidAt(place, name)
		place++
		if kid != nil {
			return d.value(c, kid)
		}
		return s.skip()
	})
}

// output reads a tensor of a list of them, by its name.
func (d *jsonDecoder) output(c *collector, n *node) error {
	if d.s.peek() != '{' {
		return d.wrong(c, n, "tensors")
	}
	t, err := readTensor(&d.s)
	if err != nil {
		return err
	}
	var raw []byte
	if t.binary >= 0 {
		if t.binary > len(d.rest) {
			return wire.Errorf(wire.Truncated, "tensor %.40q: binary_data_size is %d, %d bytes are left", t.name,
				t.binary,
				len(d.rest))
		}
		raw, d.rest = d.rest[:t.binary], d.rest[t.binary:]
	}
	to := n.kid(t.name)
	if to == nil || to.each == nil {
		return nil
	}
	if t.binary >= 0 {
		err = t.raw(raw)
	} else {
		err = t.flat()
	}
	if err != nil {
		return err
	}
	return t.set(c, to)
}

// wrong refuses a value that columns should be inside of.
func (d *jsonDecoder) wrong(c *collector, n *node, want string) error {
	if at := d.s.peek(); at != '"' && at != '[' && at != '{' && at != 't' && at != 'f' && at != '-' &&
		(at < '0' || at > '9') {
		return d.s.fail("a value")
	}
	where := "the record"
	if len(n.below) > 0 {
		where = n.below[0].path
	}
	rest := d.s.b[d.s.i:min(len(d.s.b), d.s.i+24)]
	hint := ""
	if want == "an object" && d.s.peek() == '[' {
		hint = "; write [] in the path if each item is a row"
	}
	return wire.Errorf(wire.ColumnType, "byte %d, row %d: %.24q where %s must have %s%s", d.s.i, c.at, rest, where,
		want,
		hint)
}

// columns sets the columns of a node.
func (d *jsonDecoder) columns(c *collector, n *node) error {
	from := d.s.i
	for i, col := range n.columns {
		if i > 0 {
			d.s.i = from
		}
		if err := c.once(col); err != nil {
			return err
		}
		if err := d.fill(col); err != nil {
			return err
		}
	}
	return nil
}

func (d *jsonDecoder) fill(col *column) error {
	s := &d.s
	switch at := s.peek(); {
	case at == '"':
		t, err := s.text()
		if err != nil {
			return err
		}
		return col.addText(t)
	case at == '-' || at >= '0' && at <= '9':
		n, err := s.number()
		if err != nil {
			return err
		}
		return col.addNumber(n)
	case at == '[' && col.whole():
		return d.list(col)
	case at == '[' || at == '{':
		what, hint := "a list", "[0] in the path is its first item"
		if at == '{' {
			what, hint = "an object", "the path must go on to a field of it"
		}
		return col.fail(col.n, "%s at byte %d, must be %s; %s", what, s.i, col.wantsAny(), hint)
	}
	w, err := s.word()
	if err != nil {
		return err
	}
	if w == 'n' {
		return col.addNull()
	}
	return col.addBool(w == 't')
}

// list reads a list of numbers.
func (d *jsonDecoder) list(col *column) error {
	s := &d.s
	null := false
	err := s.array(func(i int) error {
		at := s.peek()
		if at == '-' || at >= '0' && at <= '9' {
			f, err := s.float()
			if err != nil {
				return err
			}
			return col.addItem(f)
		}
		from := s.i
		if at == '"' {
			t, err := s.text()
			if err != nil {
				return err
			}
			if isNumber(t) {
				return col.addItem(parseFloat32(t))
			}
		} else if at != '[' && at != '{' {
			w, err := s.word()
			if err != nil {
				return err
			}
			if w == 'n' {
				null = true
				return nil
			}
		}
		hint := ""
		if at == '[' {
			hint = "; write [] behind the path if each item is a row"
		}
		text := s.b[from:min(len(s.b), from+16)]
		return col.fail(col.n, "item %d, at byte %d: %.16q must be a number%s", i, from, text, hint)
	})
	if err != nil {
		return err
	}
	return col.endList(null)
}
