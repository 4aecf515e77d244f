package arrowio

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/plumbline/plumbline/arrowio/wire"
)

func TestRefusedMessages(t *testing.T) {
	good := mustEncode(t, testColumns(8, 3))
	p := arrow.PrimitiveTypes
	two := arrow.FixedSizeListOf(2, p.Float32)
	text := arrow.BinaryTypes.String
	one := func(meta map[string]string, row string, fields ...arrow.Field) []byte {
		return stream(t, fields, meta, rowsOf(t, row))
	}
	prefix := func(size uint32) []byte {
		v := append([]byte(nil), good...)
		binary.LittleEndian.PutUint32(v[4:], size)
		return v
	}
	for _, c := range []struct {
		name   string
		value  []byte
		kind   Kind
		o      Options
		reason string
	}{
		{name: "empty", value: nil, reason: wire.NotArrow},
		{name: "text", value: []byte(`{"logits": [1, 2]}`), reason: wire.NotArrow},
		{name: "seven bytes", value: good[:7], reason: wire.Truncated},
		{name: "cut in the schema", value: good[:100], reason: wire.Truncated},
		{name: "cut in the body", value: good[:len(good)-40], reason: wire.Truncated},
		{name: "only a schema", value: good[:8+binary.LittleEndian.Uint32(good[4:])], reason: wire.Truncated},
		{name: "two streams", value: append(append([]byte(nil), good...), good...), reason: wire.Trailing},
		{name: "only an end marker", value: []byte("\xff\xff\xff\xff\x00\x00\x00\x00"), reason: wire.NoSchema},
		{name: "metadata of 2 GiB", value: prefix(1 << 31), reason: wire.Truncated},
		{name: "no flatbuffer", value: prefix(4), reason: wire.NotArrow},
		{name: "batch without schema", value: good[8+binary.LittleEndian.Uint32(good[4:]):], reason: wire.NoSchema},
		{name: "second schema",
			value:  append(append([]byte(nil), good[:8+binary.LittleEndian.Uint32(good[4:])]...), good...),
			reason: wire.NoSchema},
		{name: "message too large", value: good, o: Options{MaxMessageBytes: 100}, reason: wire.TooLarge},
		{name: "too many rows", value: good, o: Options{MaxRows: 7}, reason: wire.TooManyRows},
		{name: "too many classes", value: good, o: Options{MaxClasses: 2}, reason: wire.TooLarge},
		{name: "too many fields", value: good, o: Options{MaxFields: 5}, reason: wire.TooLarge},
		{name: "too many features", value: good, o: Options{MaxFeatures: 2}, reason: wire.TooLarge},
		{name: "long slice value", value: good, o: Options{MaxText: 1, Slices: []string{"region"}},
			reason: wire.TooLarge},
		{name: "no scores", value: one(model, `{"id":"a"}`, field("id", text)), reason: wire.NoColumn},
		{name: "no way to a label", value: one(model, `{"logits":[1,2]}`, field("logits", two)), reason: wire.NoColumn},
		{name: "no model", value: one(nil, `{"id":"a","logits":[1,2]}`, field("id", text), field("logits", two)),
			reason: wire.NoModel},
		{name: "labels without id", kind: Labels, value: one(model, `{"label":1}`, field("label", p.Int32)),
			reason: wire.NoColumn},
		{name: "labels without label", kind: Labels, value: one(model, `{"id":"a"}`, field("id", text)),
			reason: wire.NoColumn},
		{name: "id of 32 bits", value: one(model, `{"id":1,"logits":[1,2]}`, field("id", p.Int32),
			field("logits", two)), reason: wire.ColumnType},
		{name: "integer logits", value: one(model, `{"id":"a","logits":[1,2]}`, field("id", text),
			field("logits", arrow.ListOf(p.Int32))), reason: wire.ColumnType},
		{name: "text time", value: one(model, `{"id":"a","ts":"b","logits":[1,2]}`, field("id", text),
			field("ts", text), field("logits", two)), reason: wire.ColumnType},
		{name: "float label", value: one(model, `{"label":1.5,"logits":[1,2]}`, field("label", p.Float32),
			field("logits", two)), reason: wire.ColumnType},
		{name: "numeric slice", value: one(model, `{"label":1,"region":2,"logits":[1,2]}`, field("label", p.Int8),
			field("region", p.Int8), field("logits", two)),
			o: Options{Slices: []string{"region"}}, reason: wire.ColumnType},
		{name: "dictionary of numbers", value: one(nil, `{"label":1,"model":2,"logits":[1,2]}`, field("label", p.Int8),
			field("model", &arrow.DictionaryType{IndexType: p.Int8, ValueType: p.Int64}),
			field("logits", two)), reason: wire.ColumnType},
		{name: "duplicate column", value: stream(t, []arrow.Field{field("label", p.Int8), field("label", p.Int8),
			field("logits", two)}, model, func(b *array.RecordBuilder) {
			for _, f := range b.Fields() {
				f.AppendNull()
			}
		}), reason: wire.Duplicate},
		{name: "one class", value: one(model, `{"label":0,"logits":[1]}`, field("label", p.Int8),
			field("logits", arrow.FixedSizeListOf(1, p.Float32))), reason: wire.Shape},
		{name: "ragged logits", value: stream(t, []arrow.Field{field("label", p.Int8),
			field("logits", arrow.ListOf(p.Float32))}, model,
			rowsOf(t, `{"label":0,"logits":[1,2]}`, `{"label":0,"logits":[1,2,3]}`)), reason: wire.Shape},
		{name: "model not UTF-8", value: one(map[string]string{MetaModel: "\xff"}, `{"label":1,"logits":[1,2]}`,
			field("label", p.Int8), field("logits", two)), reason: wire.BadText},
		{name: "slice not UTF-8", value: stream(t, []arrow.Field{field("label", p.Int8), field("region", text),
			field("logits", two)}, model, func(b *array.RecordBuilder) {
			rowsOf(t, `{"label":1,"region":null,"logits":[1,2]}`)(b)
			b.Field(0).(*array.Int8Builder).Append(0)
			b.Field(1).(*array.StringBuilder).Append("\xff")
			b.Field(2).AppendNull()
		}), o: Options{Slices: []string{"region"}}, reason: wire.BadText},
		{name: "long model", value: one(map[string]string{MetaModel: strings.Repeat("m", 300)},
			`{"label":1,"logits":[1,2]}`, field("label", p.Int8), field("logits", two)), reason: wire.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) { wantReason(t, c.o, c.value, c.kind, c.reason) })
	}
}

// replaceAll replaces every occurrence of a 64-bit little-endian number, of which there must be some.
func replaceAll(t *testing.T, v []byte, from, to uint64) []byte {
	t.Helper()
	var f, g [8]byte
	binary.LittleEndian.PutUint64(f[:], from)
	binary.LittleEndian.PutUint64(g[:], to)
	if !strings.Contains(string(v), string(f[:])) {
		t.Fatalf("no %d in the message", from)
	}
	return []byte(strings.ReplaceAll(string(v), string(f[:]), string(g[:])))
}

// Lies are told by number, so the rows (77) and K (5) make lengths that occur nowhere else.
func TestLyingLengths(t *testing.T) {
	c := testColumns(77, 5)
	c.Served, c.Weight, c.Slices, c.Features, c.D = nil, nil, nil, nil, 0
	good := mustEncode(t, c)
	for _, l := range []struct {
		name     string
		from, to uint64
		reason   string
	}{
		{"rows of every column", 77, 1 << 19, wire.Shape},
		{"rows beyond the limit", 77, 1 << 40, wire.TooManyRows},
		{"negative rows", 77, 1<<64 - 77, wire.TooManyRows},
		{"elements of the slab", 77 * 5, 77*5 + 1, wire.Shape},
		{"elements beyond 64 bits", 77 * 5, 1<<63 - 1, wire.Shape},
		{"length of the slab's buffer", 77 * 5 * 4, 77*5*4 - 4, wire.Shape},
		{"slab's buffer beyond the body", 77 * 5 * 4, 1 << 40, wire.Shape},
		{"length of the ts buffer", 77 * 8, 8, wire.Shape},
	} {
		t.Run(l.name, func(t *testing.T) {
			wantReason(t, Options{}, replaceAll(t, good, l.from, l.to), Predictions, l.reason)
		})
	}
}

func TestLyingDictionaries(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	fields := []arrow.Field{
		field("region", dict),
		field("label", arrow.PrimitiveTypes.Int8),
		field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)),
	}
	v := stream(
		t,
		fields,
		model,
		rowsOf(t, `{"region":"eu","label":1,"logits":[8,9]}`, `{"region":"us","label":1,"logits":[8,9]}`),
	)
	o := Options{Slices: []string{"region"}}
	wantReason(t, o, cutMessage(t, v, 1), Predictions, wire.Dictionary)

	// The indices 0, 1 lie in front of the labels 1, 1, each padded to 8 bytes by the writer.
	at := strings.LastIndex(string(v), "\x00\x01"+strings.Repeat("\x00", 6))
	if at < 0 {
		t.Fatal("indices not found in the message")
	}
	for _, index := range []byte{2, 127, 0x80, 0xff} {
		bad := append([]byte(nil), v...)
		bad[at+1] = index
		wantReason(t, o, bad, Predictions, wire.Dictionary)
	}
}

// cutMessage takes the i-th message out of a stream.
func cutMessage(t *testing.T, v []byte, i int) []byte {
	t.Helper()
	for rest, n := v, 0; ; n++ {
		_, next, end, _, err := wire.Next(rest)
		if err != nil || end {
			t.Fatalf("no message %d: %v", i, err)
		}
		if n == i {
			from := len(v) - len(rest)
			return append(append([]byte(nil), v[:from]...), next...)
		}
		rest = next
	}
}
