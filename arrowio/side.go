package arrowio

import (
	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Side says which part of a prediction rows are. Model servers may log requests and responses apart: scores are in the
// response, features and cohorts in the request.
type Side uint8

const (
	// Whole rows are predictions as they are.
	Whole Side = iota
	// Request rows have no scores. K is 0.
	Request
	// Response rows are predictions that may lack what their requests have.
	Response
)

// sides are the values of MetaSide.
var sides = [...]string{Request: "request", Response: "response"}

func (f *planner) findSide() {
	said, ok := f.schema.Meta[MetaSide]
	if !ok || said == "" || f.Err != nil {
		return
	}
	for side, name := range sides {
		if said == name {
			f.side = Side(side)
			return
		}
	}
	f.Err = wire.Errorf(wire.NoColumn, "metadata %s is %.20q, must be request or response", MetaSide, said)
}

// KeyType is the type of an id column.
type KeyType uint8

// The types of ids that are decoded.
const (
	TextKey KeyType = iota
	BinaryKey
	SignedKey
	UnsignedKey
)

var keyFields = [...]wire.Field{
	TextKey:     {Name: "id", Type: wire.Utf8},
	BinaryKey:   {Name: "id", Type: wire.Binary},
	SignedKey:   {Name: "id", Type: wire.Int, Bits: 64, Signed: true},
	UnsignedKey: {Name: "id", Type: wire.Int, Bits: 64},
}

// Keys are the ids of a decoded batch as they came: the type, and the bytes of a row; integers have eight.
func (b *Batch) Keys() (t KeyType, at func(i int) []byte) {
	c := b.keys.id
	if c.Field.Type == wire.Int {
		t = UnsignedKey
		if c.Field.Signed {
			t = SignedKey
		}
		return t, func(i int) []byte { return c.Data[8*i : 8*i+8] }
	}
	if c.Field.Type == wire.Binary || c.Field.Type == wire.LargeBinary {
		t = BinaryKey
	}
	off, _, err := wire.Offsets(c, len(c.Text), nil)
	if err != nil {
		panic("arrowio: offsets that were decoded: " + err.Error())
	}
	return t, func(i int) []byte { return c.Text[off[i]:off[i+1]] }
}

// SetKeys gives a batch that was not decoded its ids, so that it can be encoded with them (EncodeCalibrated). Those
// of a text end where ends says.
func (b *Batch) SetKeys(t KeyType, ids []byte, ends []int32) {
	c := &wire.Column{Field: &keyFields[t], N: b.N, Data: ids}
	if t == TextKey || t == BinaryKey {
		c.Data, c.Text = record.Bytes(append([]int32{0}, ends...)), ids
	}
	ts := &wire.Column{Field: &wire.Field{Name: "ts", Type: wire.Timestamp, Unit: 3}, N: b.N, Data: record.Bytes(b.TS)}
	b.keys = &keyColumns{id: c, ts: ts}
}
