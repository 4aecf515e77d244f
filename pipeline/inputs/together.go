package inputs

import (
	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Records of few rows can be decoded together, into one message with the rows of each: Start with the first, Add for
// each further one, then Together. It holds exactly the rows of the messages that Decode makes of each; a row whose
// record has no time has the record's time in the column ts. Decode ends what was started.

// maxTogether is the most rows of a record that goes with others: one of more costs little by itself.
const maxTogether = 100

// Start begins with a record and returns how many rows it has. Not ok: it goes alone, since it cannot be decoded, or
// its rows are not few, differ in their columns other than slices, or lack an id and a score, or a label.
func (d *Decoder) Start(r *Record) (rows int, ok bool) {
	if d.dec == nil || d.requests != nil || d.rows.side != arrowio.Whole || len(d.rows.parts) > 0 ||
		len(d.rows.by[roleTS]) == 0 {
		return 0, false
	}
	d.rows.reset(&d.opt, r.Time)
	return d.Add(r)
}

// Add adds the rows of a record and returns how many these are. Not ok: it goes alone, or has not the columns of the
// rows before, slices apart; nothing was added.
func (d *Decoder) Add(r *Record) (rows int, ok bool) {
	c := d.rows
	before := c.n
	c.bounds.rows = before + maxTogether // a record of more is not read to its end
	for _, col := range c.columns {
		col.none, col.before = r.Time, mark{col.some, col.numbers}
	}
	if d.addRows(r) && c.alikeFrom(before) {
		return c.n - before, true
	}
	c.n = before
	for _, col := range c.columns {
		col.cut(before)
	}
	return 0, false
}

// addRows adds the rows of a record; not ok if it cannot be decoded.
func (d *Decoder) addRows(r *Record) (ok bool) {
	defer func() {
		if p := recover(); p != nil { // Decode says what
			ok = false
		}
	}()
	if len(r.Value) > d.opt.MaxBytes {
		return false
	}
	before := d.rows.n
	d.rows.outer(r)
	if err := d.dec.decode(r, d.rows); err != nil {
		return false
	}
	ts := d.rows.by[roleTS][0]
	if ts.some {
		return true
	}
	for ts.n = before; ts.n < d.rows.n; {
		if ts.addInstant(r.Time) != nil {
			return false
		}
	}
	return true
}

// alikeFrom reports whether the rows from the n-th on have the columns of the first, and what they must have. A slice
// that a row does not have is the same as an empty one.
func (c *collector) alikeFrom(n int) bool {
	if n == c.n {
		return true
	}
	for _, col := range c.columns {
		if n > 0 && col.before.some != col.some && col.role != cohort {
			return false
		}
	}
	for i := n; i < c.n; i++ {
		if !c.alikeRow(i, n) {
			return false
		}
	}
	return true
}

// alikeRow is alikeFrom of row i, whose record begins with row first. Rows of several numbers of scores become several
// messages alone, of which a shard may have taken some: they do not go with others.
func (c *collector) alikeRow(i, first int) bool {
	scored := false
	for _, col := range c.columns {
		there := col.some && !col.null[i]
		if there != (col.some && !col.null[0]) && col.role != cohort {
			return false
		}
		switch {
		case !there && (col.role == roleID || col.role == roleLabel && c.kind == arrowio.Labels):
			return false
		case there && col.kind == vector:
			k := len(col.row(i))
			if k != len(col.row(first)) || k < 2 && col.role != roleFeatures {
				return false
			}
		}
		scored = scored || there && isScore(col.name)
	}
	return scored || c.kind == arrowio.Labels
}

// Together is the message of the rows that were added, valid until the next call. Those of one number of scores and of
// features lie together; rows are the place of each among those that were added.
func (d *Decoder) Together() (message []byte, rows []int, err error) {
	defer func() {
		if p := recover(); p != nil {
			message, rows, err = nil, nil, wire.Errorf(wire.Panicked, "%v", p)
		}
	}()
	d.rows.together = true
	defer func() { d.rows.together = false }()
	all, err := d.rows.rows(&d.cfg)
	if err != nil {
		return nil, nil, err
	}
	each := make([]*arrowio.Rows, len(all))
	for i := range all {
		each[i] = &all[i]
	}
	if d.value, err = d.to.Append(d.value[:0], each...); err == nil && len(d.value) > d.opt.MaxBytes {
		err = wire.Errorf(wire.TooLarge, "a message of %d bytes, at most %d", len(d.value), d.opt.MaxBytes)
	}
	return d.value, d.rows.rowsOf, err
}
