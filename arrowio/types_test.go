package arrowio

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// stream is an IPC stream of one record, built by fill with the Arrow library's own builders. The checked
// allocator makes sure that the test's arrays are all released.
func stream(
	t testing.TB,
	fields []arrow.Field,
	meta map[string]string,
	fill func(*array.RecordBuilder),
	opts ...ipc.Option,
) []byte {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	md := arrow.MetadataFrom(meta)
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, &md))
	defer b.Release()
	fill(b)
	rec := b.NewRecord()
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, append([]ipc.Option{ipc.WithSchema(rec.Schema()), ipc.WithAllocator(mem)}, opts...)...)
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

var model = map[string]string{MetaModel: "m", MetaVersion: "1", "pandas": "{}"}

func field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// rowsOf fills the columns from JSON objects, one a row.
func rowsOf(t testing.TB, rows ...string) func(*array.RecordBuilder) {
	return func(b *array.RecordBuilder) {
		t.Helper()
		for _, r := range rows {
			if err := b.UnmarshalJSON([]byte(r)); err != nil {
				t.Fatalf("row %s: %v", r, err)
			}
		}
	}
}

func TestIDTypes(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	for _, c := range []struct {
		t    arrow.DataType
		json string
		want ID
	}{
		{arrow.BinaryTypes.String, `"abc"`, HashID("abc")},
		{arrow.BinaryTypes.LargeString, `"abc"`, HashID("abc")},
		{arrow.BinaryTypes.Binary, `"YWJj"`, HashID("abc")},
		{arrow.BinaryTypes.LargeBinary, `"YWJj"`, HashID("abc")},
		{arrow.PrimitiveTypes.Int64, `-2`, HashID("\xff\xff\xff\xff\xff\xff\xff\xfe")},
		{arrow.PrimitiveTypes.Uint64, `258`, HashID("\x00\x00\x00\x00\x00\x00\x01\x02")},
	} {
		v := stream(t, []arrow.Field{field("id", c.t), field("logits", two)}, model, rowsOf(t,
			`{"id":`+c.json+`,"logits":[1,2]}`, `{"id":null,"logits":[1,2]}`))
		b := decodeOne(t, Options{}, v, Predictions)
		equal(t, c.t.String(), b.IDs[0], c.want)
		equal(t, c.t.String()+" null", b.Reject, []string{"", NullRow})
		rec := b.Record()
		equal(t, c.t.String()+" record", rec.Column(0).DataType().ID(), c.t.ID())
		equal(t, c.t.String()+" nulls", rec.Column(0).NullN(), 1)
		rec.Release()
	}
}

func TestTimeUnits(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	for unit, want := range map[arrow.TimeUnit]Time{
		arrow.Second: 1_600_000_000_000_000_000, arrow.Millisecond: 1_600_000_000_123_000_000,
		arrow.Microsecond: 1_600_000_000_123_456_000, arrow.Nanosecond: 1_600_000_000_123_456_789,
	} {
		v := stream(
			t,
			[]arrow.Field{
				field("ts", &arrow.TimestampType{Unit: unit}),
				field("logits", two),
				field("label", arrow.PrimitiveTypes.Int8),
			},
			model,
			func(b *array.RecordBuilder) {
				per := int64(unit.Multiplier())
				ts := b.Field(0).(*array.TimestampBuilder)
				ts.Append(arrow.Timestamp(1_600_000_000_123_456_789 / per))
				ts.AppendNull()
				far := int64(math.MaxInt64)
				if per == 1 {
					far = 0
				}
				ts.Append(arrow.Timestamp(far))
				for range 3 {
					l := b.Field(1).(*array.FixedSizeListBuilder)
					l.Append(true)
					l.ValueBuilder().(*array.Float32Builder).AppendValues([]float32{0, 1}, nil)
					b.Field(2).(*array.Int8Builder).Append(1)
				}
			},
		)
		b := decodeOne(t, Options{}, v, Predictions)
		equal(t, unit.String(), b.TS, []Time{want, 0, 0})
		last := TimeRange
		if unit == arrow.Nanosecond {
			last = ""
		}
		equal(t, unit.String(), b.Reject, []string{"", NullRow, last})
	}
}

func TestScoreTypes(t *testing.T) {
	f16, f32, f64 := arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64
	for _, e := range []arrow.DataType{f16, f32, f64} {
		for _, l := range []arrow.DataType{arrow.FixedSizeListOf(3, e), arrow.ListOf(e), arrow.LargeListOf(e)} {
			v := stream(
				t,
				[]arrow.Field{field("logits", l), field("label", arrow.PrimitiveTypes.Uint16)},
				model,
				rowsOf(
					t,
					`{"logits":[1,-2,0.5],"label":2}`,
					`{"logits":null,"label":0}`,
					`{"logits":[4,5,6],"label":null}`,
					`{"logits":[4,null,6],"label":1}`,
				),
			)
			b := decodeOne(t, Options{}, v, Predictions)
			name := l.String()
			equal(t, name+" K", b.K, 3)
			equal(t, name+" row 0", b.Scores[:3], []float32{1, -2, .5})
			equal(t, name+" row 2", b.Scores[6:9], []float32{4, 5, 6})
			equal(t, name+" reject", b.Reject, []string{"", NullRow, "", NullRow})
			equal(t, name+" label", b.Label, []int32{2, 0, -1, 1})
		}
	}
}

func TestBinaryScores(t *testing.T) {
	for _, e := range []arrow.DataType{arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32,
		arrow.PrimitiveTypes.Float64} {
		for name, want := range map[string][]float32{"logit": {0, .25}, "prob": {.75, .25}} {
			rows := []string{
				fmt.Sprintf(`{"%s":0.25,"label":1}`, name),
				fmt.Sprintf(`{"%s":null,"label":1}`, name),
				fmt.Sprintf(`{"%s":2,"label":2}`, name),
			}
			v := stream(t, []arrow.Field{field(name, e), field("label", arrow.PrimitiveTypes.Int64)}, model,
				rowsOf(t, rows...))
			b := decodeOne(t, Options{}, v, Predictions)
			equal(t, name, b.Scores[:2], want)
			third := LabelRange
			if name == "prob" {
				third = NonfiniteScores
			}
			equal(t, name, b.Reject, []string{"", NullRow, third})
			equal(t, name, b.Probs, name == "prob")
		}
	}
}

func TestLabelTypes(t *testing.T) {
	p := arrow.PrimitiveTypes
	two := arrow.FixedSizeListOf(2, p.Float32)
	for _, c := range []arrow.DataType{p.Int8, p.Int16, p.Int32, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64} {
		rows := []string{`{"logits":[1,2],"label":1}`, `{"logits":[1,2],"label":null}`, `{"logits":[1,2],"label":2}`}
		want := []string{"", "", LabelRange}
		if arrow.IsSignedInteger(c.ID()) {
			rows, want = append(rows, `{"logits":[1,2],"label":-1}`), append(want, LabelRange)
		}
		b := decodeOne(t, Options{},
			stream(t, []arrow.Field{field("logits", two), field("label", c)}, model, rowsOf(t, rows...)), Predictions)
		equal(t, c.String(), b.Label[:3], []int32{1, -1, -1})
		equal(t, c.String(), b.Reject, want)
	}
}

func TestTextTypes(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	p := arrow.PrimitiveTypes
	kinds := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString}
	for _, ix := range []arrow.DataType{p.Int8, p.Int16, p.Int32, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64} {
		kinds = append(kinds, &arrow.DictionaryType{IndexType: ix, ValueType: arrow.BinaryTypes.String})
	}
	for _, k := range kinds {
		v := stream(
			t,
			[]arrow.Field{
				field("model", k),
				field("version", k),
				field("region", k),
				field("logits", two),
				field("label", p.Int8),
			},
			nil,
			rowsOf(t,
				`{"model":"a","version":"1","region":"eu","logits":[1,2],"label":1}`,
				`{"model":"a","version":null,"region":null,"logits":[1,2],"label":1}`,
				`{"model":null,"version":"2","region":"us","logits":[1,2],"label":1}`,
				`{"model":"a","version":"1","region":"eu","logits":[1,2],"label":1}`),
		)
		b := decodeOne(t, Options{Slices: []string{"region"}}, v, Predictions)
		name := k.String()
		equal(t, name+" models", b.Models, []ModelKey{{"a", "1"}, {"a", DefaultVersion}, {"", "2"}})
		equal(t, name+" model", b.Model, []int32{0, 1, 2, 0})
		equal(t, name+" reject", b.Reject, []string{"", "", NullRow, ""})
		equal(t, name+" region", b.Slices[0].Values, []string{"eu", "us"})
		equal(t, name+" region", b.Slices[0].Index, []int32{0, -1, 1, 0})
	}
}

func TestFeatureTypes(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	for _, e := range []arrow.DataType{arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32,
		arrow.PrimitiveTypes.Float64} {
		v := stream(
			t,
			[]arrow.Field{
				field("features", arrow.FixedSizeListOf(2, e)),
				field("logits", two),
				field("label", arrow.PrimitiveTypes.Int8),
			},
			model,
			rowsOf(t, `{"features":[1,0.5],"logits":[1,2],"label":1}`, `{"features":null,"logits":[1,2],"label":1}`),
		)
		b := decodeOne(t, Options{}, v, Predictions)
		equal(t, "features", b.Features[:2], []float32{1, .5})
		equal(t, "D", b.D, 2)
		if x := b.Features[2]; x == x {
			t.Errorf("null features: got %v, want NaN", x)
		}
	}
	c := testColumns(3, 2)
	c.HalfFeatures = true
	b := decodeOne(t, Options{}, mustEncode(t, c), Predictions)
	for i, x := range c.Features {
		equal(t, "half features", b.Features[i], half.Value(float16.New(x).Uint16()))
	}
}

// Columns of every layout in front of the ones that are read must be stepped over.
func TestUnknownColumnsAreIgnored(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	fields := []arrow.Field{
		field("a", arrow.Null),
		field("b",
			arrow.StructOf(field("x", arrow.BinaryTypes.String), field("y", arrow.ListOf(arrow.PrimitiveTypes.Int8)))),
		field("c", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)),
		field("d", arrow.FixedWidthTypes.Boolean),
		field("e", &arrow.FixedSizeBinaryType{ByteWidth: 3}),
		field("f", arrow.FixedWidthTypes.Date32),
		field("g", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int64}),
		field("h", arrow.BinaryTypes.StringView),
		field("logits", two),
		field("label", arrow.PrimitiveTypes.Int8),
	}
	v := stream(t, fields, model, rowsOf(
		t,
		`{"a":null,"b":{"x":"q","y":[1,2]},"c":[{"key":"k","value":1}],"d":true,"e":"YWJj","f":"2020-01-01","g":5,
			"h":"a string longer than twelve bytes","logits":[3,4],"label":1}`,
		`{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null,"g":null,"h":null,"logits":[5,6],"label":0}`,
	))
	b := decodeOne(t, Options{}, v, Predictions)
	equal(t, "scores", b.Scores, []float32{3, 4, 5, 6})
	equal(t, "label", b.Label, []int32{1, 0})
}

func TestCompressedBodies(t *testing.T) {
	two := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	fields := []arrow.Field{
		field("logits", two),
		field("label", arrow.PrimitiveTypes.Int64),
		field("region", arrow.BinaryTypes.String),
	}
	var rows []string
	for range 200 {
		rows = append(rows, `{"logits":[3,4],"label":1,"region":"eu"}`)
	}
	for _, codec := range []ipc.Option{ipc.WithZstd(), ipc.WithLZ4()} {
		v := stream(t, fields, model, rowsOf(t, rows...), codec)
		wantReason(t, Options{}, v, Predictions, wire.Compressed)
		wantReason(t, Options{Inflate: true, MaxInflated: 1000}, v, Predictions, wire.TooLarge)
		b := decodeOne(t, Options{Inflate: true, Slices: []string{"region"}}, v, Predictions)
		equal(t, "scores", b.Scores[398:], []float32{3, 4})
		equal(t, "label", b.Label[199], int32(1))
		equal(t, "region", b.Slices[0].Values, []string{"eu"})
	}
}
