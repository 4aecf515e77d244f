package arrowio

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// A Kafka client may hand out values at any address; the views must not depend on it.
func TestUnalignedMessages(t *testing.T) {
	c := testColumns(33, 7)
	v := mustEncode(t, c)
	for shift := range 8 {
		moved := append(make([]byte, shift, shift+len(v)), v...)[shift:]
		b := decodeOne(t, Options{Slices: []string{"region"}}, moved, Predictions)
		equal(t, "scores", b.Scores, c.Logits)
		equal(t, "ts", b.TS, c.TS)
		equal(t, "features", b.Features, c.Features)
		equal(t, "id", b.IDs[32], HashID("id-32"))
		equal(t, "reject", b.Rejected(), 0)
	}
}

// batches is a stream of n record batches, of which rows appends the rows of the i-th; dictionaries that grow are sent
// as deltas or whole.
func batches(
	t *testing.T,
	mem memory.Allocator,
	schema *arrow.Schema,
	delta bool,
	n int,
	rows func(b *array.RecordBuilder, i int),
) []byte {
	t.Helper()
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema), ipc.WithAllocator(mem), ipc.WithDictionaryDeltas(delta))
	for i := range n {
		rows(b, i)
		rec := b.NewRecord()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestEmptySliceValues: an empty value is none, also where a dictionary has it twice.
func TestEmptySliceValues(t *testing.T) {
	texts := func(values ...string) arrow.Array {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendValues(values, nil)
		return b.NewArray()
	}
	places := array.NewInt8Builder(memory.DefaultAllocator)
	places.AppendValues([]int8{1, 2, 0}, nil)
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for name, region := range map[string]arrow.Array{
		"text":       texts("eu", "", ""),
		"dictionary": array.NewDictionaryArray(dict, places.NewArray(), texts("", "eu", "")),
	} {
		md := arrow.MetadataFrom(model)
		schema := arrow.NewSchema([]arrow.Field{{Name: "region", Type: region.DataType(), Nullable: true},
			field("prob", arrow.PrimitiveTypes.Float32), field("id", arrow.BinaryTypes.String)}, &md)
		probs := array.NewFloat32Builder(memory.DefaultAllocator)
		probs.AppendValues([]float32{.1, .2, .3}, nil)
		rec := array.NewRecord(schema, []arrow.Array{region, probs.NewArray(), texts("a", "b", "c")}, 3)
		var buf bytes.Buffer
		w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
		if err := errors.Join(w.Write(rec), w.Close()); err != nil {
			t.Fatal(err)
		}
		b := decodeOne(t, Options{Slices: []string{"region"}}, buf.Bytes(), Predictions)
		if c := b.Slices[0]; c.Index[0] < 0 || c.Values[c.Index[0]] != "eu" || c.Index[1] >= 0 || c.Index[2] >= 0 {
			t.Errorf("%s: %+v, want eu and two of none", name, c)
		}
	}
}

// Several record batches, whose dictionary grows (delta) or is replaced in between.
func TestManyBatchesAndGrowingDictionaries(t *testing.T) {
	for _, delta := range []bool{false, true} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
		md := arrow.MetadataFrom(model)
		schema := arrow.NewSchema([]arrow.Field{field("region", dict), field("label", arrow.PrimitiveTypes.Int8),
			field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))}, &md)
		regions := []string{"eu", "us", "ap"}
		value := batches(t, mem, schema, delta, len(regions), func(b *array.RecordBuilder, i int) {
			for _, r := range regions[:i+1] {
				rowsOf(t, `{"region":"`+r+`","label":1,"logits":[1,2]}`)(b)
			}
		})
		bs, err := NewDecoder(Options{Slices: []string{"region"}}).Decode(value, testOrigin, Predictions)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "batches", len(bs), 3)
		for i, x := range bs {
			equal(t, "rows", x.N, i+1)
			for j := range x.N {
				equal(t, "region", x.Slices[0].Values[x.Slices[0].Index[j]], regions[j])
			}
		}
		mem.AssertSize(t, 0)
	}
}

// A stream without rows is valid and gives nothing to count.
func TestNoRows(t *testing.T) {
	fields := []arrow.Field{
		field("label", arrow.PrimitiveTypes.Int8),
		field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)),
	}
	bs, err := NewDecoder(
		Options{}).Decode(stream(t, fields, model, func(*array.RecordBuilder) {}), testOrigin, Predictions)
	if err != nil || len(bs) != 0 {
		t.Errorf("got %d batches and error %v, want none", len(bs), err)
	}
}
