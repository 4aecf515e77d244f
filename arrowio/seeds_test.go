package arrowio

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// seedMessages are valid messages of all layouts, by this package, by the Arrow library for Go and by pyarrow, for
// mutation.
func seedMessages(t testing.TB) [][]byte {
	t.Helper()
	labels, err := EncodeLabels("m", "1", []string{"a", "b", "c"}, []Time{1, 2, 3}, []int32{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	probs := Columns{Model: "m", K: 4, Probs: []float32{.25, .25, .25, .25, 1, 0, 0, 0}, IDs: []string{"a", "b"}}
	small := testColumns(5, 3)
	small.HalfFeatures = true
	seeds := [][]byte{
		mustEncode(t, testColumns(64, 10)),
		mustEncode(t, testColumns(3, 2)),
		mustEncode(t, testColumns(6, 100)),
		mustEncode(t, testColumns(2, 1000)),
		mustEncode(t, probs),
		mustEncode(t, small),
		labels,
	}
	seeds = append(seeds, librarySeeds(t)...)
	files, err := filepath.Glob("testdata/*.arrow")
	if err != nil || len(files) < 10 {
		t.Fatalf("files of pyarrow: %d, %v", len(files), err)
	}
	for _, f := range files {
		v, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, v)
	}
	return seeds
}

// librarySeeds have the types that this package's encoder does not write.
func librarySeeds(t testing.TB) [][]byte {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	fields := []arrow.Field{
		field("id", arrow.BinaryTypes.LargeString),
		field("h", arrow.BinaryTypes.StringView),
		field("model", dict),
		field("region", dict),
		field("logits", arrow.ListOf(arrow.FixedWidthTypes.Float16)),
		field("features", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64)),
		field("label", arrow.PrimitiveTypes.Uint8),
		field("ts", &arrow.TimestampType{Unit: arrow.Millisecond}),
	}
	rows := rowsOf(
		t,
		`{"id":"x","h":"a string longer than twelve bytes","model":"a","region":"eu","logits":[1,2,3],"features":[1,2],
			"label":1,"ts":"2020-01-01T00:00:00Z"}`,
		`{"id":"y","h":null,"model":"b","region":null,"logits":null,"features":null,"label":null,"ts":null}`,
	)
	odd := []arrow.Field{
		field("b",
			arrow.StructOf(field("x", arrow.BinaryTypes.String), field("y", arrow.ListOf(arrow.PrimitiveTypes.Int8)))),
		field("id", arrow.PrimitiveTypes.Uint64),
		field("logit", arrow.PrimitiveTypes.Float64),
		field("label", arrow.PrimitiveTypes.Int64),
		field("version",
			&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String}),
	}
	oddRows := rowsOf(
		t,
		`{"b":{"x":"q","y":[1,2]},"id":7,"logit":-1.5,"label":0,"version":"9"}`,
		`{"b":null,"id":8,"logit":3,"label":1,"version":null}`,
	)
	return [][]byte{
		stream(t, fields, nil, rows),
		stream(t, fields, nil, rows, ipc.WithZstd()),
		stream(t, fields, nil, rows, ipc.WithLZ4()),
		stream(t, odd, model, oddRows),
		twoBatches(t),
	}
}

// twoBatches is a stream of two record batches.
func twoBatches(t testing.TB) []byte {
	fields := []arrow.Field{
		field("id", arrow.BinaryTypes.String),
		field("probs", arrow.LargeListOf(arrow.PrimitiveTypes.Float32)),
		field("label", arrow.PrimitiveTypes.Int8),
	}
	v := stream(t, fields, model, func(b *array.RecordBuilder) {
		rowsOf(t, `{"id":"x","probs":[0.5,0.5],"label":1}`, `{"id":"y","probs":[1,0],"label":null}`)(b)
	})
	p := pieces(v)
	return concat(p[0].raw, p[1].raw, p[1].raw, p[2].raw)
}

func concat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
