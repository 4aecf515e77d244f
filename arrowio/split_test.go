package arrowio

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/internal/testsize"
)

// placeOf is some function of the id.
func placeOf(id []byte, places int) int {
	h := fnv.New32a()
	_, _ = h.Write(id)
	return int(h.Sum32()) % places
}

// lines are the rows of a stream as text, read by the Arrow library, without the columns that skip names.
func lines(t testing.TB, value []byte, skip ...string) (schema *arrow.Schema, rows []string) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		rec := r.Record()
		for i := range int(rec.NumRows()) {
			var b strings.Builder
			for c := range int(rec.NumCols()) {
				name := rec.ColumnName(c)
				if len(skip) > 0 && name == skip[0] {
					continue
				}
				cell := "null"
				if !rec.Column(c).IsNull(i) {
					cell = rec.Column(c).ValueStr(i)
				}
				fmt.Fprintf(&b, "%s=%s ", name, cell)
			}
			rows = append(rows, b.String())
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Schema(), rows
}

// every is a schema with a column of each kind that is split, and one that is not.
func every(id arrow.DataType) []arrow.Field {
	text := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	fields := []arrow.Field{
		field("id", id),
		field("ts", arrow.FixedWidthTypes.Timestamp_ms),
		field("logits", arrow.FixedSizeListOf(3, arrow.FixedWidthTypes.Float16)),
		field("extras", arrow.ListOf(arrow.PrimitiveTypes.Float64)),
		field("label", arrow.PrimitiveTypes.Int16),
		field("region", text),
		field("born", arrow.FixedWidthTypes.Date32),
		field("note", arrow.BinaryTypes.LargeString),
		field("raw", arrow.BinaryTypes.Binary),
		field("flag", arrow.FixedWidthTypes.Boolean),
		field("weight", arrow.PrimitiveTypes.Float64),
		field("tenant", text),
	}
	meta := arrow.MetadataFrom(map[string]string{"unit": "none"})
	fields[10].Metadata = meta
	fields[10].Nullable = false
	return fields
}

func everyRow(i int, id string) string {
	or := func(null bool, v string) string {
		if null {
			return "null"
		}
		return v
	}
	return fmt.Sprintf(
		`{"id":%s,"ts":%d,"logits":%s,"extras":%s,"label":%s,"region":%s,`+
			`"born":%d,"note":%s,"raw":%s,"flag":%s,"weight":%d,"tenant":%s}`,
		id,
		1000+i,
		or(i%11 == 3, fmt.Sprintf("[%d,1.5,-2]", i)),
		or(i%7 == 2, "["+strings.Repeat("0.5,", i%5)+"1]"),
		or(i%3 == 0, fmt.Sprint(i)),
		or(i%5 == 1, fmt.Sprintf(`"r%d"`, i%13)),
		i,
		or(i%6 == 0, fmt.Sprintf(`"note %d"`, i)),
		or(i%4 == 0, `"AAEC"`),
		or(i%9 == 0, fmt.Sprint(i%2 == 0)),
		i,
		or(i%8 == 1, fmt.Sprintf(`"t%d"`, i%4)),
	)
}

// TestSplit splits a message with every kind of column and compares rows, schema and metadata with what the Arrow
// library reads of the message.
func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		id    arrow.DataType
		value func(i int) string
		bytes func(i int) string
	}{
		"utf8": {arrow.BinaryTypes.String, func(i int) string { return fmt.Sprintf(`"id-%d"`, i) },
			func(i int) string { return fmt.Sprintf("id-%d", i) }},
		"int64": {arrow.PrimitiveTypes.Int64, func(i int) string { return fmt.Sprint(i) },
			func(i int) string { return string([]byte{0, 0, 0, 0, 0, 0, 0, byte(i)}) }},
	} {
		t.Run(name, func(t *testing.T) {
			const n, places = 100, 7
			var rows []string
			want := make([][]string, places)
			for i := range n {
				id := c.value(i)
				if i == 42 {
					id = "null"
				}
				rows = append(rows, everyRow(i, id))
			}
			value := stream(t, every(c.id), model, rowsOf(t, rows...))
			schema, all := lines(t, value, "born")
			for i, row := range all {
				p := placeOf([]byte(c.bytes(i)), places)
				if i == 42 {
					p = 3
				}
				want[p] = append(want[p], row)
			}
			s := NewSplitter(Options{Slices: []string{"region"}})
			place := func(id []byte) int {
				if id == nil {
					return 3
				}
				return placeOf(id, places)
			}
			parts, err := s.Split(value, testOrigin, Predictions, places, place)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.Split(value, testOrigin, Predictions, places, place)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range parts {
				if i > 0 && p.Place <= parts[i-1].Place {
					t.Errorf("part of place %d after one of %d", p.Place, parts[i-1].Place)
				}
				if !bytes.Equal(p.Value, again[i].Value) {
					t.Errorf("place %d: other bytes the second time", p.Place)
				}
				got, ls := lines(t, p.Value)
				equal(t, fmt.Sprintf("rows of place %d", p.Place), strings.Join(ls, "\n"),
					strings.Join(want[p.Place], "\n"))
				equal(t, "count", p.Rows, len(want[p.Place]))
				equal(t, "metadata", got.Metadata().String(), schema.Metadata().String())
				k := 0
				for _, f := range schema.Fields() {
					if f.Name != "born" {
						if !f.Equal(got.Field(k)) {
							t.Errorf("field %v, want %v", got.Field(k), f)
						}
						k++
					}
				}
				equal(t, "fields", got.NumFields(), k)
				if _, err := NewDecoder(Options{}).Decode(p.Value, testOrigin, Predictions); err != nil {
					t.Errorf("place %d: %v", p.Place, err)
				}
				want[p.Place] = nil
			}
			for p, w := range want {
				if w != nil {
					t.Errorf("no part of place %d", p)
				}
			}
		})
	}
}

// TestSplitAddsTime: without ts, parts have the record's.
func TestSplitAddsTime(t *testing.T) {
	value, err := EncodeLabels("m", "1", []string{"a", "b", "c"}, nil, []int32{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := NewSplitter(Options{}).Split(value, testOrigin, Labels, 1, func([]byte) int { return 0 })
	if err != nil || len(parts) != 1 {
		t.Fatal(len(parts), err)
	}
	schema, rows := lines(t, parts[0].Value, "ts")
	_, want := lines(t, value)
	equal(t, "rows", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	if f := schema.Field(schema.NumFields() - 1); f.Name != "ts" ||
		!arrow.TypeEqual(f.Type, arrow.FixedWidthTypes.Timestamp_ns) {
		t.Errorf("last field %v, want ts", f)
	}
	o := testOrigin
	o.Time = 5 // of the part's record: it must not matter
	bs, err := NewDecoder(Options{}).Decode(parts[0].Value, o, Labels)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "times", fmt.Sprint(bs[0].TS), fmt.Sprint([]Time{testOrigin.Time, testOrigin.Time, testOrigin.Time}))
}

// TestSplitLargeMessages: what one place gets is cut where it is longer than may be, and no row is lost by it.
func TestSplitLargeMessages(t *testing.T) {
	var ids []string
	for i := range 1000 {
		ids = append(ids, fmt.Sprint("prediction-", i))
	}
	value, err := EncodeLabels("m", "1", ids, nil, make([]int32, len(ids)))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := NewSplitter(
		Options{MaxMessageBytes: len(value)}).Split(value, testOrigin, Labels, 1, func([]byte) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, p := range parts {
		if len(p.Value) > len(value) {
			t.Errorf("part of %d bytes, at most %d", len(p.Value), len(value))
		}
		_, ls := lines(t, p.Value, "ts")
		rows = append(rows, ls...)
	}
	_, want := lines(t, value)
	if len(parts) < 2 || strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d parts with %d rows, want some with %d", len(parts), len(rows), len(want))
	}
	if _, err := NewSplitter(
		Options{MaxMessageBytes: 64},
	).Split(value, testOrigin, Labels, 1, func([]byte) int { return 0 }); err == nil {
		t.Error("a message longer than may be was taken")
	}
}

// TestSplitBatchesAndDictionaries has several record batches whose dictionaries grow or are replaced, and two columns
// of one dictionary, one with narrow indices.
func TestSplitBatchesAndDictionaries(t *testing.T) {
	for _, delta := range []bool{false, true} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
		md := arrow.MetadataFrom(model)
		schema := arrow.NewSchema(
			[]arrow.Field{
				field("id", arrow.BinaryTypes.String),
				field("region", dict),
				field("label", arrow.PrimitiveTypes.Int8),
			},
			&md,
		)
		value := batches(t, mem, schema, delta, 6, func(b *array.RecordBuilder, i int) {
			for j := range 10 * (i + 1) {
				rowsOf(t, fmt.Sprintf(`{"id":"%d-%d","region":"r%d","label":1}`, i, j, j))(b)
			}
		})
		mem.AssertSize(t, 0)
		_, rows := lines(t, value)
		want := map[int]string{}
		k := 0
		for i := range 6 {
			for j := range 10 * (i + 1) {
				want[placeOf(fmt.Appendf(nil, "%d-%d", i, j), 3)] += rows[k] + "\n"
				k++
			}
		}
		parts, err := NewSplitter(
			Options{}).Split(value, testOrigin, Labels, 3, func(id []byte) int { return placeOf(id, 3) })
		if err != nil || len(parts) != 3 {
			t.Fatal(len(parts), err)
		}
		for _, p := range parts {
			_, ls := lines(t, p.Value, "ts")
			equal(t, fmt.Sprintf("deltas %v, place %d", delta, p.Place), strings.Join(ls, "\n")+"\n", want[p.Place])
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	good, err := EncodeLabels("m", "1", []string{"a"}, nil, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	long := stream(
		t,
		[]arrow.Field{field("id", arrow.BinaryTypes.String), field("label", arrow.PrimitiveTypes.Int8)},
		map[string]string{
			MetaModel: "m",
			"pandas":  strings.Repeat("x", maxSplitSchema),
		},
		rowsOf(t, `{"id":"a","label":1}`),
	)
	for name, c := range map[string]struct {
		value  []byte
		reason string
	}{
		"garbage":  {[]byte("no arrow at all"), wire.NotArrow},
		"cut":      {good[:len(good)/2], wire.Truncated},
		"trailing": {append(append([]byte{}, good...), good...), wire.Trailing},
		"schema":   {long, wire.TooLarge},
	} {
		parts, err := NewSplitter(Options{}).Split(c.value, testOrigin, Labels, 2, func([]byte) int { return 0 })
		var de *DecodeError
		if !errors.As(err, &de) || de.Reason != c.reason || parts != nil {
			t.Errorf("%s: %d parts, error %v, want reason %s", name, len(parts), err, c.reason)
		}
	}
}

// TestSplitMutated splits mutated messages: no panic, and what is taken decodes, with as many rows.
func TestSplitMutated(t *testing.T) {
	var rows []string
	for i := range 20 {
		rows = append(rows, everyRow(i, fmt.Sprintf(`"id-%d"`, i)))
	}
	value := stream(t, every(arrow.BinaryTypes.String), model, rowsOf(t, rows...))
	s, d := NewSplitter(Options{MaxRows: 1000}), NewDecoder(Options{MaxRows: 1000})
	rng := rand.New(rand.NewPCG(3, 4))
	taken := 0
	for range testsize.Short(5000, 20_000) {
		v := bytes.Clone(value)
		for range 1 + rng.IntN(3) {
			switch i := rng.IntN(len(v)); rng.IntN(3) {
			case 0:
				v[i] ^= 1 << rng.IntN(8)
			case 1:
				v[i] = byte(rng.Uint32())
			default:
				v[i] = []byte{0, 1, 0x7f, 0xff}[rng.IntN(4)]
			}
		}
		parts, err := s.Split(v, testOrigin, Predictions, 3, func(id []byte) int { return placeOf(id, 3) })
		if err != nil {
			var de *DecodeError
			if !errors.As(err, &de) || de.Reason == wire.Panicked {
				t.Fatalf("%v, for %x", err, v)
			}
			continue
		}
		taken++
		whole, err := d.Decode(v, testOrigin, Predictions)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, b := range whole {
			n += b.N
		}
		for _, p := range parts {
			bs, err := d.Decode(p.Value, testOrigin, Predictions)
			if err != nil {
				t.Fatalf("part: %v, for %x", err, v)
			}
			for _, b := range bs {
				n -= b.N
			}
		}
		if n != 0 {
			t.Fatalf("%d rows lost, for %x", n, v)
		}
	}
	if taken < 1000 {
		t.Errorf("%d of 20000 taken: the mutations test little", taken)
	}
}

// BenchmarkSplit is a message of 1000 rows of 10 classes for 8 partitions.
func BenchmarkSplit(b *testing.B) {
	c := Columns{Model: "m", K: 10, Logits: make([]float32, 10000)}
	for i := range 1000 {
		c.IDs, c.TS = append(c.IDs, fmt.Sprint("prediction-", i)), append(c.TS, int64(i))
	}
	value := mustEncode(b, c)
	s := NewSplitter(Options{})
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Split(
			value,
			testOrigin,
			Predictions,
			8,
			func(id []byte) int { return placeOf(id, 8) },
		); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "rows/s")
}
