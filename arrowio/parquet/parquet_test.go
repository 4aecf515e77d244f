package parquet_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	pq "github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/parquet"
)

// everything reads all columns that can be read, as text by column.
func everything(b []byte, rows int) (map[string][]string, error) {
	f, err := parquet.OpenWithin(bytes.NewReader(b), 1<<20)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, field := range f.Fields() {
		name := field.Name
		r, err := f.ReadRecords(rows, func(c string, _ bool) bool { return c == name })
		if err != nil {
			return nil, err
		}
		for r.Next() {
			c := r.Record().Column(0)
			if c.Len() > rows {
				return nil, fmt.Errorf("a record of %d rows, asked were %d", c.Len(), rows)
			}
			for i := range c.Len() {
				out[name] = append(out[name], c.ValueStr(i))
			}
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	return out, nil
}

func sample() arrow.Record {
	b := record.New(5)
	b.Meta("key", "value")
	b.Add("id", false, record.Strings([]string{"a", "b", "", "é", "e"}))
	b.Add("ts", false, record.Fixed(arrow.FixedWidthTypes.Timestamp_ns, []int64{1, 2, 3, 4, 5}, nil))
	b.Add("logits", false, record.Slab([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 2))
	nan := float32(math.NaN())
	b.Add("features", true, record.Features([]float32{1, nan, nan, 4, 5}, 1, false))
	b.Add("weight", true, record.NaNNull([]float32{nan, 1, nan, 2, 3}))
	b.Add("label", true,
		record.Fixed(arrow.PrimitiveTypes.Int32, []int32{1, -1, 0, 2, 1}, func(i int) bool { return i == 1 }))
	return b.Record()
}

// TestRoundTrip: what is written is read, whatever the number of rows of a record.
func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	if err := parquet.Write(&out, sample()); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.Open(bytes.NewReader(out.Bytes()))
	if err != nil || f.Rows() != 5 || f.Meta("key") != "value" || f.Meta("other") != "" {
		t.Fatalf("%v, metadata %q", err, f.Meta("key"))
	}
	want := map[string]string{
		"id": "a|b||é|e", "logits": "[1,2]|[3,4]|[5,6]|[7,8]|[9,10]", "features": "[1]|(null)|(null)|[4]|[5]",
		"weight": "(null)|1|(null)|2|3", "label": "1|(null)|0|2|1",
	}
	for rows := 1; rows < 7; rows++ {
		got, err := everything(out.Bytes(), rows)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if s := strings.Join(got[name], "|"); s != v {
				t.Errorf("%d rows a record, column %s: got %s, want %s", rows, name, s, v)
			}
		}
	}
}

// TestTwoLevelLists: lists as old writers wrote them, and repeated values without a group.
func TestTwoLevelLists(t *testing.T) {
	repeated := func(name string) schema.Node {
		return schema.MustPrimitive(schema.NewPrimitiveNode(name, pq.Repetitions.Repeated, pq.Types.Float, -1, -1))
	}
	list, err := schema.NewGroupNodeLogical("logits", pq.Repetitions.Optional, schema.FieldList{repeated("array")},
		schema.ListLogicalType{}, -1)
	if err != nil {
		t.Fatal(err)
	}
	root := schema.MustGroup(
		schema.NewGroupNode("schema", pq.Repetitions.Repeated, schema.FieldList{list, repeated("bare")}, -1))
	var out bytes.Buffer
	w := file.NewParquetWriter(struct{ io.Writer }{&out}, root)
	group := w.AppendRowGroup()
	for _, def := range [][]int16{{2, 2, 0, 1, 2}, {1, 1, 0, 0, 1}} {
		c, err := group.NextColumn()
		if err == nil {
			_, err = c.(*file.Float32ColumnChunkWriter).WriteBatch([]float32{1, 2, 3}, def, []int16{0, 1, 0, 0, 0})
		}
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := everything(out.Bytes(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"logits": "[1,2]|(null)|[]|[3]", "bare": "[1,2]|[]|[]|[3]"} {
		if s := strings.Join(got[name], "|"); s != want {
			t.Errorf("%s: got %s, want %s", name, s, want)
		}
	}
}

// seeds are the files of package table's tests, which pyarrow made.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	names, err := filepath.Glob("../table/testdata/parquet/*.parquet")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	var out [][]byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// FuzzOpen: whatever a file holds, it is read or refused.
func FuzzOpen(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = everything(b, 100) })
}

// TestMutatedFiles flips bits and cuts, so that hostile files are met without fuzzing, too.
func TestMutatedFiles(t *testing.T) {
	const most = 1 << 30 // of memory, for one file of some kilobytes: a multiple of what it may expand to, as text
	r := rand.New(rand.NewPCG(1, 1))
	all := seeds(t)
	refused := 0
	const tries = 500
	for range tries {
		b := slices.Clone(all[r.IntN(len(all))])
		for range 1 + r.IntN(4) {
			switch r.IntN(4) {
			case 0:
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			case 1:
				binary.LittleEndian.PutUint32(b[r.IntN(len(b)-4):], r.Uint32()>>r.IntN(32))
			case 2:
				at := r.IntN(len(b) - 64)
				copy(b[at:], b[r.IntN(len(b)-64):][:r.IntN(64)])
			case 3: // in the footer
				n := min(len(b)-8, int(binary.LittleEndian.Uint32(b[len(b)-8:])))
				b[len(b)-8-1-r.IntN(max(n, 1))] = byte(r.Uint32())
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := everything(b, 100); err != nil {
			refused++
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > most {
			t.Fatalf("%d bytes of memory for a file of %d", after.TotalAlloc-before.TotalAlloc, len(b))
		}
	}
	if refused < tries/10 {
		t.Errorf("%d of %d mutated files refused", refused, tries)
	}
}

// footer is a file of nothing but a footer.
func footer(b string) []byte {
	return slices.Concat([]byte("PAR1"), []byte(b), binary.LittleEndian.AppendUint32(nil, uint32(len(b))),
		[]byte("PAR1"))
}

// TestLyingFooters: a count in a footer takes no memory before what it counts is there.
func TestLyingFooters(t *testing.T) {
	const count = "\xff\xff\xff\xff\x07" // 2^31-1
	deep := strings.Repeat("\x48\x01n\x15\x02\x00", 1000)
	for name, c := range map[string]struct{ footer, want string }{
		"elements": {"\x15\x02\x19\xfc" + count, "a list of 2147483647 entries"},
		"children": {"\x15\x02\x19\x2c\x48\x01n\x15\xfe\xff\xff\xff\x0f\x00\x48\x01n\x00\x00", "a schema node with"},
		"depth":    {"\x15\x02\x19\xfc\xe8\x07" + deep + "\x00", "a schema node with"},
		"empty":    {"", "the metadata is cut off"},
		"other":    {"\x3b\x01\x02", "a value of type 11"},
	} {
		if _, err := parquet.Open(bytes.NewReader(footer(c.footer))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := parquet.Open(strings.NewReader("PAR1 and no more")); err == nil ||
		!strings.Contains(err.Error(), "no PAR1 at the end") {
		t.Errorf("got %v", err)
	}
}

// TestUnreadableColumns: a column of structs is an error where it is asked for, and none where it is not.
func TestUnreadableColumns(t *testing.T) {
	b, err := os.ReadFile("../table/testdata/parquet/plain-none.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.Open(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadRecords(10, func(name string, _ bool) bool { return name == "other" }); err == nil ||
		!strings.Contains(err.Error(), "column other: type list") {
		t.Errorf("got %v", err)
	}
	r, err := f.ReadRecords(10, func(_ string, text bool) bool { return text })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Schema().Fields() {
		names = append(names, f.Name)
	}
	if want := []string{"id", "region", "model"}; !slices.Equal(names, want) {
		t.Errorf("columns of text are %v, want %v", names, want)
	}
	for r.Next() {
		if _, ok := r.Record().Column(0).(*array.String); !ok {
			t.Errorf("column id is %T", r.Record().Column(0))
		}
	}
}
