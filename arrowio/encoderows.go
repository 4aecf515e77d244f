package arrowio

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// Rows are rows to encode of which any value may be missing, as those that other formats than Arrow bring. A column
// that is nil is absent, else it has N entries.
type Rows struct {
	N int
	// Model and Version are those of all rows, where there is no column of them.
	Model, Version   string
	Models, Versions *TextColumn
	IDs              *TextColumn // or
	NumberIDs        []uint64    // those below 0 in two's complement
	NoID             []bool      // of NumberIDs
	TS               []Time
	NoTS             []bool
	Form             ScoreForm // of Scores; of labels the zero value
	K                int       // of a row of Scores; 1 for one score
	Scores           []float32
	NoScores         []bool
	Label            []int64
	NoLabel          []bool
	D                int
	Features         []float32 // N×D; a row that begins with NaN is null
	Served, Weight   []float32
	NoServed         []bool
	NoWeight         []bool
	Slices           []NamedText
}

// TextColumn is text of rows: that of row i ends at Ends[i] and begins where the one before ends. Empty is null.
type TextColumn struct {
	Data []byte
	Ends []int32
}

// NamedText is a slice column.
type NamedText struct {
	Name string
	Text *TextColumn
}

// At is the text of row i.
func (t *TextColumn) At(i int) []byte {
	from := int32(0)
	if i > 0 {
		from = t.Ends[i-1]
	}
	return t.Data[from:t.Ends[i]]
}

// Encode encodes the rows as the value of a record of the logits or the labels topic. It does not judge the values.
func (r *Rows) Encode() ([]byte, error) {
	b := newRecord(r.N, r.Model, r.Version)
	text := func(name string, t *TextColumn) {
		if t != nil {
			b.Add(name, true, record.TextOf(t.Data, t.Ends))
		}
	}
	text("model", r.Models)
	text("version", r.Versions)
	text("id", r.IDs)
	if r.NumberIDs != nil {
		b.Add("id", true, record.Fixed(arrow.PrimitiveTypes.Uint64, r.NumberIDs, at(r.NoID)))
	}
	if r.TS != nil {
		b.Add("ts", true, record.Fixed(arrow.FixedWidthTypes.Timestamp_ns, r.TS, at(r.NoTS)))
	}
	if r.Form.Binary {
		b.Add(r.Form.Column, true, record.Fixed(arrow.PrimitiveTypes.Float32, r.Scores, at(r.NoScores)))
	} else if r.Form.Column != "" {
		values := record.Fixed(arrow.PrimitiveTypes.Float32, r.Scores, nil)
		b.Add(r.Form.Column, true, record.List(values, r.N, r.K, at(r.NoScores)))
	}
	if r.Label != nil {
		b.Add("label", true, record.Fixed(arrow.PrimitiveTypes.Int64, r.Label, at(r.NoLabel)))
	}
	if r.Features != nil {
		b.Add("features", true, record.Features(r.Features, r.D, false))
	}
	if r.Served != nil {
		b.Add("served", true, record.Fixed(arrow.PrimitiveTypes.Float32, r.Served, at(r.NoServed)))
	}
	if r.Weight != nil {
		b.Add("weight", true, record.Fixed(arrow.PrimitiveTypes.Float32, r.Weight, at(r.NoWeight)))
	}
	for _, s := range r.Slices {
		text(s.Name, s.Text)
	}
	rec := b.Record()
	defer rec.Release()
	value, err := record.Encode(rec)
	if err != nil {
		return nil, fmt.Errorf("encode rows: %w", err)
	}
	return value, nil
}

// Halves are the rows of the first half, and the others. N is 2 or more.
func (r *Rows) Halves() (first, second *Rows) {
	return r.cut(0, r.N/2), r.cut(r.N/2, r.N)
}

func (r *Rows) cut(from, to int) *Rows {
	out := *r
	out.N = to - from
	out.Models, out.Versions, out.IDs = r.Models.cut(from, to), r.Versions.cut(from, to), r.IDs.cut(from, to)
	out.NumberIDs, out.NoID = part(r.NumberIDs, from, to), part(r.NoID, from, to)
	out.TS, out.NoTS = part(r.TS, from, to), part(r.NoTS, from, to)
	out.Scores, out.NoScores = part(r.Scores, from*r.K, to*r.K), part(r.NoScores, from, to)
	out.Label, out.NoLabel = part(r.Label, from, to), part(r.NoLabel, from, to)
	out.Features = part(r.Features, from*r.D, to*r.D)
	out.Served, out.NoServed = part(r.Served, from, to), part(r.NoServed, from, to)
	out.Weight, out.NoWeight = part(r.Weight, from, to), part(r.NoWeight, from, to)
	out.Slices = nil
	for _, s := range r.Slices {
		out.Slices = append(out.Slices, NamedText{s.Name, s.Text.cut(from, to)})
	}
	return &out
}

func part[T any](v []T, from, to int) []T {
	if v == nil {
		return nil
	}
	return v[from:to]
}

func (t *TextColumn) cut(from, to int) *TextColumn {
	if t == nil {
		return nil
	}
	out := &TextColumn{Data: t.Data}
	start := int32(0)
	if from > 0 {
		start = t.Ends[from-1]
	}
	out.Data = t.Data[start:]
	for _, end := range t.Ends[from:to] {
		out.Ends = append(out.Ends, end-start)
	}
	if n := len(out.Ends); n > 0 {
		out.Data = out.Data[:out.Ends[n-1]]
	}
	return out
}

// at is the test of a column's nulls; nil where it has none.
func at(null []bool) func(int) bool {
	if null == nil {
		return nil
	}
	return func(i int) bool { return null[i] }
}
