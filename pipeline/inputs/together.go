package inputs

import (
	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Records of one row each can be decoded together, into one message with a row of each: Start with the first, Add for
// each further one, then Together. It holds exactly the rows of the messages that Decode makes of each; a row whose
// record has no time has the record's time in the column ts. Decode ends what was started.

// Start begins with a record. false: it is none of one row with an id and a score, or a label, and goes alone.
func (d *Decoder) Start(r *Record) bool {
	if d.dec == nil || d.requests != nil || d.rows.side != arrowio.Whole || len(d.rows.parts) > 0 ||
		len(d.rows.by[roleTS]) == 0 {
		return false
	}
	d.rows.reset(&d.opt, r.Time)
	return d.Add(r)
}

// Add adds the row of a record. false: it has not the same columns as the rows before, with as many scores and
// features, or not one good row: nothing was added.
func (d *Decoder) Add(r *Record) bool {
	c := d.rows
	before := c.n
	c.bounds.rows = before + 1 // a record of many rows is not read to its end
	for _, col := range c.columns {
		col.none, col.before = r.Time, mark{col.some, col.numbers}
	}
	if d.addRow(r) && c.alikeRow(before) {
		return true
	}
	c.n = before
	for _, col := range c.columns {
		col.cut(before)
	}
	return false
}

// addRow adds the rows of a record; true if it is one.
func (d *Decoder) addRow(r *Record) (one bool) {
	defer func() {
		if p := recover(); p != nil { // Decode says what
			one = false
		}
	}()
	if len(r.Value) > d.opt.MaxBytes {
		return false
	}
	before := d.rows.n
	d.rows.outer(r)
	if err := d.dec.decode(r, d.rows); err != nil || d.rows.n != before+1 {
		return false
	}
	ts := d.rows.by[roleTS][0]
	if ts.some {
		return true
	}
	ts.n = before
	return ts.addInstant(r.Time) == nil
}

// alikeRow reports whether row i has the columns of the rows before, and what it must have.
func (c *collector) alikeRow(i int) bool {
	scored := false
	for _, col := range c.columns {
		there := col.some && !col.null[i]
		if i > 0 && (col.before.some != col.some || there != (col.some && !col.null[0])) {
			return false
		}
		switch {
		case !there && (col.role == roleID || col.role == roleLabel && c.kind == arrowio.Labels):
			return false
		case there && col.kind == vector:
			k := len(col.row(i))
			if k != len(col.row(0)) || k < 2 && col.role != roleFeatures {
				return false
			}
		}
		scored = scored || there && isScore(col.name)
	}
	return scored || c.kind == arrowio.Labels
}

// Together are the messages of the rows that were added, in their order, valid until the next call.
func (d *Decoder) Together() (messages [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			messages, err = nil, wire.Errorf(wire.Panicked, "%v", p)
		}
	}()
	rows, err := d.rows.rows(&d.cfg)
	if err != nil {
		return nil, err
	}
	return d.messagesOf(rows)
}
