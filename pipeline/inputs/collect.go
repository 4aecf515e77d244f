package inputs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// collector gathers the rows of one record.
type collector struct {
	*mapping
	bounds bounds
	n      int   // rows of the documents before
	at     int   // row that columns are set in
	counts []int // items of the lists of this document; -1 = no list
	// fixed are the columns of the document that no list has: one value for all of its rows.
	fixed []*column
	given []given // of outside, in this record
	// by are the columns by what they are for, those of several parts joined; parts are these.
	by    [roles][]*column
	parts map[role][]*column
	order []int    // 0, 1, 2 …
	alike [1]group // of a record whose rows are all of one size
	out   []arrowio.Rows
	// together: out becomes one message, whose rows are these.
	together bool
	rowsOf   []int
}

// given is what lies beside a value; a header that is there may have no value.
type given struct {
	value []byte
	there bool
}

func newCollector(m *mapping) *collector {
	c := &collector{mapping: m, counts: make([]int, m.lists), parts: map[role][]*column{}}
	listed := map[*column]bool{}
	m.root.walk(func(n *node) {
		if n.each != nil {
			for _, col := range n.each.below {
				listed[col] = true
			}
		}
	})
	for _, col := range m.columns {
		col.b = &c.bounds
		c.by[col.role] = append(c.by[col.role], col)
		if !listed[col] {
			c.fixed = append(c.fixed, col)
		}
	}
	for r, cols := range c.by[cohort+1:] {
		if len(cols) > 1 {
			c.parts[cohort+1+role(r)] = cols
		}
	}
	return c
}

func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, k := range n.kids {
		k.walk(visit)
	}
	for _, k := range n.items {
		k.walk(visit)
	}
	if n.each != nil {
		n.each.walk(visit)
	}
}

// reset begins a record of a time.
func (c *collector) reset(o *Options, at arrowio.Time) {
	c.n = 0
	c.bounds = bounds{left: o.MaxBytes * blowUp, rows: o.MaxRows, classes: o.MaxClasses, items: o.MaxFeatures}
	for _, col := range c.columns {
		col.reset()
		col.none = at
	}
}

// blowUp is how many times the largest message the columns of one may take.
const blowUp = 8

// outer reads the columns that are outside of the value, which are the same for all its rows.
func (c *collector) outer(r *Record) {
	c.given = c.given[:0]
	for _, o := range c.outside {
		v, ok := r.outside(&o.path)
		c.given = append(c.given, given{v, ok})
	}
}

// outside finds what lies beside the value.
func (r *Record) outside(p *path) (v []byte, ok bool) {
	if p.from == "record" {
		if p.name == "time" {
			return strconv.AppendInt(nil, r.Time, 10), r.Time > 0
		}
		return r.Key, r.Key != nil
	}
	for _, h := range r.Headers {
		name, isEvent := h.Key, p.from == "header"
		for _, prefix := range []string{"ce_", "ce-"} {
			if p.from == "event" && len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
				name, isEvent = name[len(prefix):], true
			}
		}
		if isEvent && strings.EqualFold(name, p.name) {
			v, ok = h.Value, h.Value != nil || p.from == "header"
		}
	}
	return v, ok
}

// begin begins a document: one object.
func (c *collector) begin() error {
	c.at = c.n
	for i, o := range c.outside {
		v, err := c.given[i].value, error(nil)
		switch {
		case !c.given[i].there:
			err = o.addAbsent()
		case v == nil:
			err = o.addNull()
		case o.path.from == "record" && o.path.name == "time":
			var ns int64
			if ns, err = strconv.ParseInt(string(v), 10, 64); err == nil && o.kind == instant {
				err = o.addInstant(ns)
			} else if err == nil {
				err = o.addInt(ns)
			}
		case o.kind == number || o.kind == class && o.classes == nil, o.kind == instant && allDigits(v):
			err = o.column.addWritten(v)
		default:
			err = o.addText(v)
		}
		if err != nil {
			return err
		}
	}
	for i := range c.counts {
		c.counts[i] = -1
	}
	return nil
}

// once refuses a column that has a value in this row already. A decoder calls it before it adds a value.
func (c *collector) once(col *column) error {
	if col.n != c.at {
		return wire.Errorf(wire.Duplicate, "row %d, %s (column %s) is there twice", c.at, col.path, col.name)
	}
	return nil
}

// beginList begins a list whose items are rows.
func (c *collector) beginList(n *node) error {
	if c.counts[n.list] >= 0 {
		return wire.Errorf(wire.Duplicate, "row %d, the list of %s is there twice", c.at, n.each.below[0].path)
	}
	c.counts[n.list], c.at = 0, c.n
	return nil
}

// endItem ends an item of a list.
func (c *collector) endItem(n *node) error {
	c.at++
	c.counts[n.list]++
	if c.at > c.bounds.rows {
		return wire.Errorf(wire.TooManyRows, "more than %d rows", c.bounds.rows)
	}
	return fill(n.each.below, c.at)
}

// endList ends a list.
func (c *collector) endList() { c.at = c.n }

func fill(cols []*column, n int) error {
	for _, col := range cols {
		for col.n < n {
			if err := col.addAbsent(); err != nil {
				return err
			}
		}
	}
	return nil
}

// end ends a document.
func (c *collector) end() error {
	n := 1
	for _, k := range c.counts {
		if k >= 0 {
			n = -1
		}
	}
	if c.mapping.lists > 0 {
		var err error
		if n, err = c.itemsOf(n); err != nil {
			return err
		}
	}
	end := c.n + n
	if end > c.bounds.rows {
		return wire.Errorf(wire.TooManyRows, "more than %d rows", c.bounds.rows)
	}
	if n == 0 {
		return c.drop()
	}
	if err := fill(c.fixed, c.n+1); err != nil {
		return err
	}
	for _, col := range c.fixed {
		if err := col.repeat(end); err != nil {
			return err
		}
	}
	c.n = end
	return fill(c.columns, end)
}

// itemsOf is how many items each list of a document has; n = -1 where it has any.
func (c *collector) itemsOf(n int) (items int, err error) {
	of := ""
	c.root.walk(func(node *node) {
		if node.each == nil || err != nil {
			return
		}
		k, path := c.counts[node.list], node.each.below[0].path
		switch {
		case k < 0:
		case n < 0:
			n, of = k, path
		case k != n:
			err = wire.Errorf(wire.Shape, "row %d, %s has %d items, %s has %d: each is a row", c.n, of, n, path, k)
		}
		if k < 0 && slices.ContainsFunc(node.each.below, func(col *column) bool { return c.needed(col) }) {
			err = wire.Errorf(wire.NoColumn, "row %d, %s (column %s): there is no such list", c.n, path,
				node.each.below[0].name)
		}
	})
	return n, err
}

// drop removes the values that a document without rows has set, at most one a column.
func (c *collector) drop() error {
	for _, col := range c.columns {
		if col.n > c.n {
			col.dropLast()
		}
	}
	return nil
}

// needed reports whether there are no rows without the column.
func (c *collector) needed(col *column) bool {
	if c.kind == arrowio.Labels {
		return col.name == "id" || col.name == "label"
	}
	return isScore(col.name)
}

// rows are those of the record, by their number of classes.
func (c *collector) rows(cfg *Config) ([]arrowio.Rows, error) {
	if c.n == 0 {
		return nil, nil
	}
	if len(c.parts) > 0 {
		if err := c.joinParts(); err != nil {
			return nil, err
		}
	}
	form, scores := arrowio.ScoreForm{}, []*column(nil)
	if c.side != arrowio.Whole && !some(c.by[roleID]) {
		return nil, c.missing("ids", "id")
	}
	if c.side == arrowio.Request {
		// There are no scores.
	} else if c.kind == arrowio.Predictions {
		if form, scores = c.scores(); form.Column == "" {
			return nil, c.missing("scores", "logits", "probs", "logit", "prob")
		}
	} else if !some(c.by[roleID]) || !some(c.by[roleLabel]) {
		if !some(c.by[roleID]) {
			return nil, c.missing("ids", "id")
		}
		return nil, c.missing("labels", "label")
	}
	groups := c.groups(form, scores)
	c.out, c.rowsOf = c.out[:0], c.rowsOf[:0]
	for i := range groups {
		g := &groups[i]
		if c.together {
			c.rowsOf = append(c.rowsOf, g.rows...)
		}
		if len(scores) > 0 && !form.Binary && g.k < 2 {
			return nil, wire.Errorf(wire.Shape, "row %d, %s (column %s): %d scores, at least 2", g.rows[0],
				scores[0].path, scores[0].name, g.k)
		}
		c.build(g, form, scores, cfg)
	}
	return c.out, nil
}

func some(cols []*column) bool {
	return slices.ContainsFunc(cols, func(c *column) bool { return c.some })
}

func (c *collector) missing(what string, names ...string) error {
	var paths []string
	for _, col := range c.columns {
		if slices.Contains(names, col.name) {
			paths = append(paths, col.path)
		}
	}
	at := cmp.Or(joined(paths), names[0])
	return wire.Errorf(wire.NoColumn, "rows without %s: there is nothing, or null, at %q", what, at)
}

func (c *collector) joinParts() error {
	for r, parts := range c.parts {
		whole, err := join(parts, c.n)
		if err != nil {
			return err
		}
		c.by[r] = whole
	}
	return nil
}

// join makes one column of the parts of a vector. A row with some of them only has none.
func join(parts []*column, n int) ([]*column, error) {
	first := parts[0]
	whole := &column{cells: cells{name: first.name, role: first.role, path: first.path, kind: vector, b: first.b},
		part: -1}
	for i := range n {
		null := false
		for _, p := range parts {
			if null = null || !p.some || p.null[i]; !null {
				if err := whole.addItem(p.row(i)[0]); err != nil {
					return nil, err
				}
			}
		}
		if err := whole.endList(null); err != nil {
			return nil, err
		}
	}
	return []*column{whole}, nil
}

// group is the rows of one number of classes and of features.
type group struct {
	k, d int
	rows []int
}

// groups are in the order of their first rows. A row without scores goes with those before it.
func (c *collector) groups(form arrowio.ScoreForm, of []*column) []group {
	scores, features := vectorOf(of), vectorOf(c.by[roleFeatures])
	first := group{k: 1, d: features.firstSize()}
	if form.Binary {
		scores = nil
	} else {
		first.k = scores.firstSize()
	}
	for i := len(c.order); i < c.n; i++ {
		c.order = append(c.order, i)
	}
	var out []group
	last := 0
	for i := range c.n {
		size := group{k: first.k, d: first.d}
		if out != nil {
			size = out[last]
		}
		k, d := scores.sizeAt(i, size.k), features.sizeAt(i, size.d)
		if out == nil {
			if k == first.k && d == first.d {
				continue
			}
			first.rows = slices.Clone(c.order[:i])
			out = []group{first}
		}
		if k != size.k || d != size.d {
			last = slices.IndexFunc(out, func(g group) bool { return g.k == k && g.d == d })
			if last < 0 {
				out, last = append(out, group{k: k, d: d}), len(out)
			}
		}
		out[last].rows = append(out[last].rows, i)
	}
	if out == nil {
		first.rows = c.order[:c.n]
		c.alike[0] = first
		return c.alike[:]
	}
	return out
}

// vectorOf is a column of lists that has any; nil = there is none.
func vectorOf(cols []*column) *column {
	if len(cols) == 0 || cols[0].kind != vector || !cols[0].some {
		return nil
	}
	return cols[0]
}

// sizeAt is the length of the list of row i; none is of the length before.
func (c *column) sizeAt(i, before int) int {
	if c == nil || c.null[i] {
		return before
	}
	return len(c.row(i))
}

// firstSize is that of the first row that has any.
func (c *column) firstSize() int {
	if c == nil {
		return 0
	}
	for i := range c.n {
		if !c.null[i] {
			return len(c.row(i))
		}
	}
	return 0
}
