package inputs

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// cells are the values of a column so far, row after row. A column without a value takes no memory: null and the slices
// of values are empty until some is true.
type cells struct {
	name string
	role role
	path string // as configured
	kind kind
	b    *bounds

	n    int
	null []bool
	some bool  // one is not null; of times, one is there, be it null
	none int64 // the time of a row that has none: the record's

	words   arrowio.TextColumn
	last    string  // the name that all rows of a record had
	ints    []int64 // instants, classes, ids that are numbers
	numbers int8    // of ids: 1 numbers, 2 text, 0 none yet
	floats  []float32
	ends    []int32 // of vectors
	before  mark    // of the rows before the record at hand, where several are decoded together
}

// bounds limit what a record may contain.
type bounds struct {
	left    int // bytes of columns
	rows    int
	classes int
	items   int // of features
}

// mark is what cut brings back, beside the rows.
type mark struct {
	some    bool
	numbers int8
}

func (c *cells) reset() {
	c.n, c.some, c.numbers = 0, false, 0
	c.null, c.words.Data, c.words.Ends = c.null[:0], c.words.Data[:0], c.words.Ends[:0]
	c.ints, c.floats, c.ends = c.ints[:0], c.floats[:0], c.ends[:0]
}

// take counts memory.
func (c *cells) take(bytes int) error {
	if c.b.left -= bytes; c.b.left < 0 {
		return wire.Errorf(wire.TooLarge, "row %d, %s (column %s): the rows take more memory than the limit", c.n,
			c.path,
			c.name)
	}
	return nil
}

// room makes room for a value, behind the rows before that have none.
func (c *cells) room(bytes int) error {
	for len(c.null) < c.n {
		if err := c.take(16); err != nil {
			return err
		}
		switch c.kind {
		case text:
			c.words.Ends = append(c.words.Ends, int32(len(c.words.Data)))
		case ident:
			c.words.Ends = append(c.words.Ends, int32(len(c.words.Data)))
			c.ints = append(c.ints, 0)
		case instant:
			c.ints = append(c.ints, c.none)
		case class:
			c.ints = append(c.ints, 0)
		case number:
			c.floats = append(c.floats, float32(math.NaN()))
		case vector:
			c.ends = append(c.ends, int32(len(c.floats)))
		}
		c.null = append(c.null, c.role != roleTS)
	}
	return c.take(bytes)
}

func (c *cells) added() error {
	c.null = append(c.null, false)
	c.some = true
	c.n++
	return nil
}

// row is the list of row i.
func (c *cells) row(i int) []float32 {
	from := int32(0)
	if i > 0 {
		from = c.ends[i-1]
	}
	return c.floats[from:c.ends[i]]
}

func (c *cells) picked(at []int) *arrowio.TextColumn {
	if at == nil {
		return &c.words
	}
	out := &arrowio.TextColumn{}
	for _, i := range at {
		out.Data = append(out.Data, c.words.At(i)...)
		out.Ends = append(out.Ends, int32(len(out.Data)))
	}
	return out
}

// named is the one name of all rows, or the column of them, or always this; rows that have none have another.
func (c *cells) named(at []int, other string, always bool) (name string, col *arrowio.TextColumn) {
	t := c.picked(at)
	same := !always
	for i := range t.Ends {
		same = same && string(t.At(i)) == string(t.At(0))
	}
	if same {
		if b := t.At(0); string(b) != c.last {
			c.last = string(b)
		}
		if name = c.last; name == "" {
			name = other
		}
		if name != "" {
			return name, nil
		}
	}
	if other == "" {
		return "", t
	}
	out := &arrowio.TextColumn{}
	for i := range t.Ends {
		if s := t.At(i); len(s) > 0 {
			out.Data = append(out.Data, s...)
		} else {
			out.Data = append(out.Data, other...)
		}
		out.Ends = append(out.Ends, int32(len(out.Data)))
	}
	return "", out
}

// slab is the lists of some rows, each of k, row by row; NaN where a row has none.
func (c *cells) slab(at []int, k int) []float32 {
	n := len(at)
	if at == nil {
		if n = c.n; len(c.floats) == n*k {
			return c.floats
		}
	}
	out := make([]float32, 0, n*k)
	for j := range n {
		i := j
		if at != nil {
			i = at[j]
		}
		row := c.row(i)
		if c.null[i] || len(row) != k {
			out = append(out, slices.Repeat([]float32{float32(math.NaN())}, k)...)
			continue
		}
		out = append(out, row...)
	}
	return out
}

// dropLast takes back the last row.
func (c *cells) dropLast() {
	c.n--
	c.truncate(c.n)
}

// cut takes back all rows from the n-th on, whole or in parts, to the mark.
func (c *cells) cut(n int) {
	c.n, c.some, c.numbers = n, c.before.some, c.before.numbers
	if !c.some {
		n = 0
	}
	c.truncate(n)
}

// truncate keeps the values of the first n rows.
func (c *cells) truncate(n int) {
	n = min(n, len(c.null))
	c.null = c.null[:n]
	switch c.kind {
	case ident, text:
		c.words.Ends = c.words.Ends[:n]
		c.words.Data = c.words.Data[:lastOf(c.words.Ends)]
		if c.kind == ident {
			c.ints = c.ints[:n]
		}
	case instant, class:
		c.ints = c.ints[:n]
	case number:
		c.floats = c.floats[:n]
	case vector:
		c.ends = c.ends[:n]
		c.floats = c.floats[:lastOf(c.ends)]
	}
}

func lastOf(ends []int32) int32 {
	if len(ends) == 0 {
		return 0
	}
	return ends[len(ends)-1]
}
