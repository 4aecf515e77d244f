package arrowio

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// allocates is how many bytes f allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// One row of many classes and null rows of no length make a slab far larger than the message: of one batch it is
// harmless, of a hundred batches it is gigabytes. The bound is of the message.
func TestSparseBatchesAreBoundedByMessage(t *testing.T) {
	const n, k = 256, 512
	fields := []arrow.Field{
		field("id", arrow.PrimitiveTypes.Int64),
		field("logits", arrow.ListOf(arrow.FixedWidthTypes.Float16)),
	}
	v := stream(t, fields, model, func(b *array.RecordBuilder) {
		for i := range n {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			l := b.Field(1).(*array.ListBuilder)
			if i > 0 {
				l.AppendNull()
				continue
			}
			l.Append(true)
			for range k {
				l.ValueBuilder().(*array.Float16Builder).AppendValueFromString("1")
			}
		}
	})
	p := pieces(v)
	b := decodeOne(t, Options{}, v, Predictions)
	equal(t, "rejected", b.Rejected(), n-1)
	many := concat(p[0].raw)
	for range 100 {
		many = append(many, p[1].raw...)
	}
	got := allocates(func() { wantReason(t, Options{}, many, Predictions, wire.TooLarge) })
	if limit := uint64(64*len(many) + 8<<20); got > limit {
		t.Errorf("got %d bytes allocated for a message of %d, want at most %d", got, len(many), limit)
	}
}

// A message of a few hundred bytes may declare a million rows.
func TestDeclaredRowsCostNothing(t *testing.T) {
	for _, kind := range []Kind{Predictions, Labels} {
		for s, v := range seedMessages(t) {
			list := pieces(v)
			for _, p := range list {
				for _, sp := range p.spots {
					if sp.meaning == rowCount {
						binary.LittleEndian.PutUint64(p.raw[sp.at:], 1<<20)
					}
				}
			}
			got := allocates(func() {
				if _, err := NewDecoder(
					Options{Slices: []string{"region", "tenant"}},
				).Decode(v, testOrigin, kind); err == nil {
					t.Errorf("seed %d: a million rows were accepted", s)
				}
			})
			if got > 1<<20 {
				t.Errorf("seed %d: got %d bytes allocated for a message of %d that declares a million rows", s, got,
					len(v))
			}
		}
	}
}

// Every buffer of a compressed body declares its length: a lie must not be believed before the bytes could give it.
func TestDeclaredLengthsOfCompressedBuffers(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	fields := []arrow.Field{field("logits", two), field("label", arrow.PrimitiveTypes.Int64)}
	for _, codec := range []ipc.Option{ipc.WithZstd(), ipc.WithLZ4()} {
		v, lengths := stream(t, fields, model, rowsOf(t, `{"logits":[3,4],"label":1}`), codec), 0
		for _, sp := range pieces(v)[1].spots {
			if sp.meaning != prefix {
				continue
			}
			lengths++
			for _, lie := range []uint64{256 << 20, 1 << 31, 1 << 40, 1<<63 - 1, 1<<64 - 2} {
				bad := concat(v)
				at := len(pieces(v)[0].raw) + sp.at
				binary.LittleEndian.PutUint64(bad[at:], lie)
				got := allocates(func() {
					if _, err := NewDecoder(Options{Inflate: true}).Decode(bad, testOrigin, Predictions); err == nil {
						t.Errorf("declared length %d was accepted", lie)
					}
				})
				if got > 16<<20 {
					t.Errorf("declared length %d: got %d bytes allocated", lie, got)
				}
			}
		}
		if lengths < 2 {
			t.Errorf("%d buffers that declare a length, want those of both columns", lengths)
		}
	}
}

// bomb is a message of n equal values, which compresses a thousandfold.
func bomb(t testing.TB, n int, codec ipc.Option) []byte {
	fields := []arrow.Field{
		field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64)),
		field("label", arrow.PrimitiveTypes.Int64),
	}
	return stream(t, fields, model, func(b *array.RecordBuilder) {
		l := b.Field(0).(*array.FixedSizeListBuilder)
		for range n {
			l.Append(true)
			l.ValueBuilder().(*array.Float64Builder).AppendValues([]float64{0, 0}, nil)
			b.Field(1).(*array.Int64Builder).Append(0)
		}
	}, codec)
}

func TestCompressionBombs(t *testing.T) {
	const rows = 1 << 18
	for name, codec := range map[string]ipc.Option{"zstd": ipc.WithZstd(), "lz4": ipc.WithLZ4()} {
		v := bomb(t, rows, codec)
		plain := rows * 24
		if len(v)*50 > plain {
			t.Fatalf("%s: %d bytes of %d are no bomb", name, len(v), plain)
		}
		wantReason(t, Options{}, v, Predictions, wire.Compressed)
		o := Options{Inflate: true, MaxInflated: 2 << 20}
		got := allocates(func() { wantReason(t, o, v, Predictions, wire.TooLarge) })
		if limit := uint64(2*o.MaxInflated + 16<<20); got > limit {
			t.Errorf("%s: got %d bytes allocated for a bomb of %d, want at most %d", name, got, plain, limit)
		}
		b := decodeOne(t, Options{Inflate: true}, v, Predictions)
		equal(t, name, b.N, rows)
	}
}

// Many field tables that are one in the message are many when parsed: such a schema is not kept.
func TestLargeSchemasAreNotKept(t *testing.T) {
	d := NewDecoder(Options{})
	fields := []arrow.Field{
		field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)),
		field("label", arrow.PrimitiveTypes.Int8),
	}
	keep := func() int { return d.plans.order.Len() }
	decode := func() {
		t.Helper()
		v := stream(t, fields, model, func(b *array.RecordBuilder) {
			for i := range fields {
				b.Field(i).AppendEmptyValue()
			}
		})
		bs, err := d.Decode(v, testOrigin, Predictions)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "rows", bs[0].N, 1)
	}
	decode()
	equal(t, "small schemas kept", keep(), 1)
	for i := range 200 {
		fields = append(fields, field(fmt.Sprint(i, strings.Repeat("x", 400)), arrow.PrimitiveTypes.Int8))
	}
	decode()
	equal(t, "large schemas kept", keep(), 1)
}

// TestSchemasOfManyModelsAreKept: messages of one row that name their model in the metadata have a schema for each
// model version, which must not be parsed for each of them; long ones stay within a bound of bytes.
func TestSchemasOfManyModelsAreKept(t *testing.T) {
	for _, c := range []struct {
		models, text, least, most int // plans kept
	}{{1000, 1, 1000, 1000}, {2000, DefaultMaxText, 1000, 2000}, {5000, 1, 1000, 4096}} {
		d := NewDecoder(Options{})
		for i := range c.models {
			cols := testColumns(1, 3)
			cols.Model = fmt.Sprintf("m%0*d", c.text-1, i)
			if _, err := d.Decode(mustEncode(t, cols), testOrigin, Predictions); err != nil {
				t.Fatal(err)
			}
		}
		if n := d.plans.order.Len(); n < c.least || n > c.most || n != len(d.plans.byKey[Predictions]) ||
			d.plans.bytes > maxPlanBytes {
			t.Errorf("%d models: %d plans of %d bytes", c.models, n, d.plans.bytes)
		}
	}
	d := NewDecoder(Options{})
	fields := []arrow.Field{field("label", arrow.PrimitiveTypes.Int8),
		field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))}
	for i := range 20 {
		fields = append(fields, field(fmt.Sprint(i, strings.Repeat("x", 1000)), arrow.PrimitiveTypes.Int8))
	}
	for i := range 500 {
		fields[2].Name = fmt.Sprint("of message ", i)
		v := stream(t, fields, model, func(b *array.RecordBuilder) {
			for i := range fields {
				b.Field(i).AppendEmptyValue()
			}
		})
		if _, err := d.Decode(v, testOrigin, Predictions); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.plans.order.Len(); n < 100 || n >= 500 || d.plans.bytes > maxPlanBytes {
		t.Errorf("%d long plans of %d bytes", n, d.plans.bytes)
	}
}

// TestEncodedSchemasAreBounded: names of models are the sender's, and so is what the encoder keeps of them.
func TestEncodedSchemasAreBounded(t *testing.T) {
	for _, bytes := range []int{20, 30 << 10, 900 << 10} {
		var e RowsEncoder
		for i := range 1200 {
			r := &Rows{N: 1, Model: fmt.Sprintf("%0*d", bytes, i), Label: []int64{1}, TS: []Time{1},
				IDs: &TextColumn{Data: []byte("a"), Ends: []int32{1}}}
			if _, err := e.Append(nil, r); err != nil {
				t.Fatal(err)
			}
			if bytes > 1<<20/4 && i > 50 {
				break
			}
		}
		held := 0
		for key, head := range e.schemas {
			held += len(key) + len(head)
		}
		if held != e.bytes || held > maxPlanBytes || bytes < 100 && len(e.schemas) != 1200 {
			t.Errorf("names of %d bytes: %d schemas of %d bytes, counted are %d", bytes, len(e.schemas), held, e.bytes)
		}
	}
}
