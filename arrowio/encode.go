package arrowio

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Columns are predictions to encode: n rows by the first of Logits (n×K), Probs (n×K), IDs, TS or Label
// that is set. The others are nil or have n rows too.
type Columns struct {
	Model, Version string // schema metadata
	IDs            []string
	TS             []Time // absent: the Kafka record's
	K              int
	Logits         []float32 // n×K; or
	Probs          []float32 // n×K
	Label          []int32   // -1 → null
	D              int
	Features       []float32 // n×D
	HalfFeatures   bool      // write features as float16
	Served, Weight []float32 // NaN → null
	Slices         []StringColumn
}

// StringColumn is a text column.
type StringColumn struct {
	Name   string
	Values []string
}

// rows is n of c, or an error naming the column that disagrees.
func (c *Columns) rows() (int, error) {
	n := -1
	var err error
	set := func(name string, length, per int) {
		if length == 0 || err != nil {
			return
		}
		if per <= 0 || length%per != 0 {
			err = fmt.Errorf("column %s: %d values are no multiple of %d a row", name, length, per)
			return
		}
		if n < 0 {
			n = length / per
		}
		if length/per != n {
			err = fmt.Errorf("column %s: %d rows, the columns before have %d", name, length/per, n)
		}
	}
	set("logits", len(c.Logits), c.K)
	set("probs", len(c.Probs), c.K)
	set("id", len(c.IDs), 1)
	set("ts", len(c.TS), 1)
	set("label", len(c.Label), 1)
	set("features", len(c.Features), c.D)
	set("served", len(c.Served), 1)
	set("weight", len(c.Weight), 1)
	for _, s := range c.Slices {
		set(s.Name, len(s.Values), 1)
	}
	if err == nil && n < 0 {
		err = fmt.Errorf("no rows")
	}
	return n, err
}

// EncodePredictions encodes c as the value of a record of the logits topic. It does not judge the values.
func EncodePredictions(c Columns) ([]byte, error) {
	if len(c.Logits) > 0 && len(c.Probs) > 0 {
		return nil, fmt.Errorf("encode predictions: both logits and probs are set, want one")
	}
	if len(c.Logits) == 0 && len(c.Probs) == 0 {
		return nil, fmt.Errorf("encode predictions: neither logits nor probs are set")
	}
	rec, err := c.record()
	if err != nil {
		return nil, fmt.Errorf("encode predictions: %w", err)
	}
	defer rec.Release()
	return encodeStream(rec)
}

// EncodeLabels encodes the value of a record of the labels topic: row i says that the prediction ids[i]
// has turned out to be of class label[i], known since ts[i]. ts may be nil: the Kafka record's time.
func EncodeLabels(model, version string, ids []string, ts []Time, label []int32) ([]byte, error) {
	c := Columns{Model: model, Version: version, IDs: ids, TS: ts, Label: label}
	if len(ids) != len(label) {
		return nil, fmt.Errorf("encode labels: %d labels for %d ids", len(label), len(ids))
	}
	rec, err := c.record()
	if err != nil {
		return nil, fmt.Errorf("encode labels: %w", err)
	}
	defer rec.Release()
	return encodeStream(rec)
}

// record builds the record of all columns that are set.
func (c *Columns) record() (arrow.Record, error) {
	n, err := c.rows()
	if err != nil {
		return nil, err
	}
	b := newRecordBuilder(n, c.Model, c.Version)
	if len(c.IDs) > 0 {
		b.add("id", false, stringArray(c.IDs))
	}
	if len(c.TS) > 0 {
		b.add("ts", false, fixedArray(arrow.FixedWidthTypes.Timestamp_ns, c.TS, nil))
	}
	if len(c.Logits) > 0 {
		b.add("logits", false, slabArray(c.Logits, c.K))
	}
	if len(c.Probs) > 0 {
		b.add("probs", false, slabArray(c.Probs, c.K))
	}
	if len(c.Label) > 0 {
		b.add("label", true, fixedArray(arrow.PrimitiveTypes.Int32, c.Label, func(i int) bool { return c.Label[i] < 0 }))
	}
	if len(c.Features) > 0 {
		b.add("features", true, featureArray(c.Features, c.D, c.HalfFeatures))
	}
	if len(c.Served) > 0 {
		b.add("served", true, nanNull(c.Served))
	}
	if len(c.Weight) > 0 {
		b.add("weight", true, nanNull(c.Weight))
	}
	for _, s := range c.Slices {
		if len(s.Values) > 0 {
			b.add(s.Name, false, stringArray(s.Values))
		}
	}
	return b.record(), nil
}

// recordBuilder collects the columns of a record.
type recordBuilder struct {
	n      int
	fields []arrow.Field
	cols   []arrow.Array
	keys   []string
	values []string
}

func newRecordBuilder(n int, model, version string) *recordBuilder {
	b := &recordBuilder{n: n}
	b.meta(MetaModel, model)
	b.meta(MetaVersion, version)
	return b
}

func (b *recordBuilder) meta(key, value string) {
	if value != "" {
		b.keys, b.values = append(b.keys, key), append(b.values, value)
	}
}

// add takes the array over.
func (b *recordBuilder) add(name string, nullable bool, a arrow.Array) {
	b.fields = append(b.fields, arrow.Field{Name: name, Type: a.DataType(), Nullable: nullable})
	b.cols = append(b.cols, a)
}

func (b *recordBuilder) record() arrow.Record {
	md := arrow.NewMetadata(b.keys, b.values)
	rec := array.NewRecord(arrow.NewSchema(b.fields, &md), b.cols, int64(b.n))
	for _, a := range b.cols {
		a.Release()
	}
	return rec
}

func encodeStream(rec arrow.Record) ([]byte, error) {
	size := 1024
	for _, c := range rec.Columns() {
		size += int(c.Data().SizeInBytes()) + 256
	}
	buf := bytes.NewBuffer(make([]byte, 0, size))
	w := ipc.NewWriter(buf, ipc.WithSchema(rec.Schema()), ipc.WithAllocator(memory.DefaultAllocator))
	if err := w.Write(rec); err != nil {
		return nil, fmt.Errorf("write record batch: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end stream: %w", err)
	}
	return buf.Bytes(), nil
}
