package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/internal/archivetest"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// scanned is what ScanFeatures says of a file, with the features read from where it says that they are.
type scanned struct {
	info     FeatureInfo
	d, k     int
	label    []int32
	ts       []arrowio.Time
	ids      []arrowio.ID
	null     []int32
	features []float32
	mapped   int // rows whose features were not read
	weighted bool
}

func scanBytes(t testing.TB, name string, content []byte) (*scanned, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &scanned{}
	info, err := ScanFeatures(path, func(p *FeaturePart) error { return s.add(content, p) })
	s.info = info
	return s, err
}

func (s *scanned) add(content []byte, p *FeaturePart) error {
	if len(p.Label) != p.N || p.TS != nil && len(p.TS) != p.N || p.IDs != nil && len(p.IDs) != p.N {
		return fmt.Errorf("part of %d rows: %d labels, %d times", p.N, len(p.Label), len(p.TS))
	}
	for _, i := range p.Null {
		s.null = append(s.null, int32(len(s.label))+i)
	}
	s.label, s.ts, s.ids = append(s.label, p.Label...), append(s.ts, p.TS...), append(s.ids, p.IDs...)
	s.d, s.k, s.weighted = max(s.d, p.D), max(s.k, p.K), s.weighted || p.Weighted
	if p.Offset < 0 {
		if len(p.Values) != p.N*p.D {
			return fmt.Errorf("%d values for %d rows of %d", len(p.Values), p.N, p.D)
		}
		s.features = append(s.features, p.Values...)
		return nil
	}
	s.mapped += p.N
	raw := content[p.Offset : p.Offset+int64(p.N*p.D*p.Width)] // a part that lies says so here
	for ; len(raw) > 0; raw = raw[p.Width:] {
		switch p.Width {
		case 2:
			s.features = append(s.features, half.Value(binary.LittleEndian.Uint16(raw)))
		case 4:
			s.features = append(s.features, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		case 8:
			s.features = append(s.features, float32(math.Float64frombits(binary.LittleEndian.Uint64(raw))))
		}
	}
	return nil
}

// TestScanArchive reads files of the archive.
func TestScanArchive(t *testing.T) {
	for _, c := range []struct{ half, scores bool }{{true, true}, {true, false}, {false, true}} {
		b, parts, _ := archivetest.File(t, c.half, c.scores)
		s, err := scanBytes(t, "a.arrow", b)
		if err != nil {
			t.Fatal(err)
		}
		var label []int32
		var features []float32
		for _, p := range parts {
			label = append(label, p.Label...)
			for i := 0; i < len(p.Features); i += p.FeatureBytes() {
				if c.half {
					features = append(features, half.Value(binary.LittleEndian.Uint16(p.Features[i:])))
				} else {
					features = append(features, math.Float32frombits(binary.LittleEndian.Uint32(p.Features[i:])))
				}
			}
		}
		if !slices.Equal(s.label, label) || !slices.Equal(s.features, features) || s.k != 4 || s.d != 3 ||
			s.mapped != 15 ||
			len(s.ids) != 15 ||
			s.weighted ||
			!s.info.Archive {
			t.Errorf("scanned %+v", s)
		}
	}
}

// arrowOf encodes a record of the given columns, as a file or a stream.
func arrowOf(t testing.TB, file bool, opts []ipc.Option, fields []arrow.Field, cols []arrow.Array) []byte {
	t.Helper()
	rec := array.NewRecord(arrow.NewSchema(fields, nil), cols, int64(cols[0].Len()))
	opts = append(opts, ipc.WithSchema(rec.Schema()))
	out := &archivetest.Memory{}
	var err error
	if file {
		var w *ipc.FileWriter
		if w, err = ipc.NewFileWriter(out, opts...); err == nil {
			err = errors.Join(w.Write(rec), w.Close())
		}
	} else {
		w := ipc.NewWriter(out, opts...)
		err = errors.Join(w.Write(rec), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes
}

func listsOf[T float](t testing.TB, rows [][]T) arrow.Array {
	t.Helper()
	typ := arrow.ListOf(arrow.PrimitiveTypes.Float32)
	if _, wide := any(rows).([][]float64); wide {
		typ = arrow.ListOf(arrow.PrimitiveTypes.Float64)
	}
	b := array.NewListBuilder(memory.DefaultAllocator, typ.Elem())
	e := b.ValueBuilder()
	for _, row := range rows {
		b.Append(row != nil)
		for _, v := range row {
			switch e := e.(type) {
			case *array.Float32Builder:
				e.Append(float32(v))
			case *array.Float64Builder:
				e.Append(float64(v))
			}
		}
	}
	return b.NewArray()
}

func intsOf(v ...int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for _, x := range v {
		if x == -9 {
			b.AppendNull()
			continue
		}
		b.Append(x)
	}
	return b.NewArray()
}

// TestScanFeatures: lists with gaps, float64, compressed bodies, streams, Parquet and CSV.
func TestScanFeatures(t *testing.T) {
	fields := func(features arrow.Array) []arrow.Field {
		return []arrow.Field{
			{Name: "label", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			{Name: "features", Type: features.DataType(), Nullable: true},
		}
	}
	gaps := listsOf(t, [][]float32{{1, 2}, nil, {5, 6}})
	wide := listsOf(t, [][]float64{{1, 2}, {3, 4}, {5, 6}})
	want := &Table{
		N:        3,
		K:        2,
		D:        2,
		Features: []float32{1, 2, 3, 4, 5, 6},
		Label:    []int32{0, -1, 1},
		Scores32: []float32{1, 0, 1, 0, 0, 1},
		TS:       []arrowio.Time{7, 8, 9},
		Weight:   []float32{1, 2, 1},
	}
	written := func(name string) []byte {
		path := filepath.Join(t.TempDir(), name)
		if err := Write(path, want); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	all := []float32{1, 2, 3, 4, 5, 6}
	for name, c := range map[string]struct {
		content  []byte
		features []float32
		mapped   int
		k        int
		null     int
		ts       bool
	}{
		"gaps.arrow": {arrowOf(t, true, nil, fields(gaps), []arrow.Array{intsOf(0, -9, 1), gaps}),
			[]float32{1, 2, 0, 0, 5, 6}, 0, 0, 1, false},
		"wide.arrow": {arrowOf(t, true, nil, fields(wide), []arrow.Array{intsOf(0, -9, 1), wide}), all, 3, 0, 0, false},
		"zstd.arrow": {
			arrowOf(t, true, []ipc.Option{ipc.WithZstd()}, fields(wide), []arrow.Array{intsOf(0, -9, 1), wide}),
			all, 0, 0, 0, false},
		"stream": {arrowOf(t, false, nil, fields(wide), []arrow.Array{intsOf(0, -1, 1), wide}), all, 3, 0, 0,
			false},
		"table.arrow":  {written("a.arrow"), all, 3, 2, 0, true},
		"table.arrows": {written("a.arrows"), all, 3, 2, 0, true},
		"parquet":      {written("a.parquet"), all, 0, 2, 0, true},
		"csv":          {written("a.csv"), all, 0, 2, 0, true},
		"bare csv": {[]byte("\ufefffeatures_0,other,features_1,label\n1,x,2,0\n3,,4,\n5,z,6,1\n"), all, 0, 0, 0,
			false},
	} {
		s, err := scanBytes(t, "f", c.content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(s.features, c.features) || s.mapped != c.mapped || s.k != c.k || len(s.null) != c.null ||
			(s.ts != nil) != c.ts ||
			!slices.Equal(s.label, []int32{0, -1, 1}) {
			t.Errorf("%s: got %+v", name, s)
		}
		if c.ts && (!slices.Equal(s.ts, want.TS) || !s.weighted) {
			t.Errorf("%s: times %v, weighted %v", name, s.ts, s.weighted)
		}
	}
}

// TestScanFeaturesTimes: numbers of a CSV file have one unit, fractions or not.
func TestScanFeaturesTimes(t *testing.T) {
	const head = "features_0,label,ts\n"
	s, err := scanBytes(t, "f", []byte(head+"1,0,1700000001.0\n2,1,1700000001.5\n3,0,1700000002\n"))
	if want := []arrowio.Time{1_700_000_001e9, 1_700_000_001_500_000_000, 1_700_000_002e9}; err != nil ||
		!slices.Equal(s.ts, want) {
		t.Errorf("times %v, %v; want %v", s, err, want)
	}
	_, err = scanBytes(t, "f", []byte(head+"1,0,1700000001\n2,1,1700000001500\n"))
	if err == nil || !strings.Contains(err.Error(),
		"line 3, column ts: 1700000001500 is a time in milliseconds by its size, 1700000001 at row 0 one in seconds") {
		t.Errorf("two units: %v", err)
	}
}

// TestScanFeaturesNull reads Parquet files of pyarrow whose first features are null, as fixed-size lists and as lists:
//
//	features = pa.array([None, [1, 2], [3, 4], None, [5, 6], [7, 8]], TYPE)
//	pq.write_table(pa.table({"features": features, "label": …}), …)
func TestScanFeaturesNull(t *testing.T) {
	for _, name := range []string{"nulls_fixed.parquet", "nulls_lists.parquet"} {
		var values []float32
		var null []int32
		rows := 0
		_, err := ScanFeatures(filepath.Join("testdata", name), func(p *FeaturePart) error {
			values, null, rows = append(values, p.Values...), append(null, p.Null...), rows+p.N
			return nil
		})
		if err != nil || rows != 6 || len(values) != 12 || !slices.Equal(null, []int32{0, 3}) {
			t.Fatalf("%s: got %d rows, %v, null %v, %v", name, rows, values, null, err)
		}
		for i, want := range []float32{2: 1, 2, 3, 4, 8: 5, 6, 7, 8} {
			if want != 0 && values[i] != want {
				t.Errorf("%s: value %d is %v, want %v", name, i, values[i], want)
			}
		}
	}
}

// TestScanFeaturesRefuses: what is not to be read is refused with what is wrong, and where.
func TestScanFeaturesRefuses(t *testing.T) {
	b, _, _ := archivetest.File(t, true, true)
	f := listsOf(t, [][]float32{{1}, {2}})
	of := func(name string, label arrow.Array) []byte {
		return arrowOf(t, true, nil,
			[]arrow.Field{{Name: "label", Type: label.DataType()}, {Name: name, Type: f.DataType()}},
			[]arrow.Array{label, f})
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty": {nil, "the file is empty"},
		"cut":   {b[:len(b)-1], "no ARROW1 at the end"},
		"half":  {b[:len(b)/2], "no ARROW1 at the end"},
		"footer": {append(slices.Clone(b[:len(b)-10]), "\xff\xff\xff\x7fARROW1"...),
			"a footer of 2147483647 bytes"},
		"no features": {of("other", intsOf(1, 1)), "no features"},
		"no labels":   {[]byte("features_0\n1\n"), "no labels"},
		"csv label":   {[]byte("features_0,label\n1,-2\n"), "label -2 at row 0"},
		"csv number":  {[]byte("features_0,label\n1,0\nx,1\n"), "line 3, column features_0"},
		"csv twice":   {[]byte("features_0,label,label\n"), "column label occurs twice"},
		"label":       {of("features", intsOf(0, -2)), "column label: -2 at row 1"},
		"large label": {of("features", intsOf(0, 1<<40)), "column label: 1099511627776 at row 1"},
		"label type": {arrowOf(t, true, nil, []arrow.Field{{Name: "label", Type: f.DataType()},
			{Name: "features", Type: f.DataType()}}, []arrow.Array{f, f}),
			`column "label" is list<float32>, allowed is an integer`},
		"npz":         {[]byte("PK\x03\x04......"), "--array"},
		"npy":         {[]byte("\x93NUMPY......"), "numpy.savez"},
		"parquet":     {[]byte("PAR1 and nothing else PAR1"), ""},
		"other rows":  {replaceRows(b), "metadata plumbline.rows says 16"},
		"message":     {corrupt(b, 8+4, 0xff), "at byte 8"},
		"only an end": {[]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), "ends before its schema"},
	} {
		_, err := scanBytes(t, "f", c.content)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func corrupt(b []byte, at int, v byte) []byte {
	out := slices.Clone(b)
	out[at] = v
	out[at+1], out[at+2], out[at+3] = v, v, 0x7f
	return out
}

// replaceRows lets the metadata say 16 rows where there are 15.
func replaceRows(b []byte) []byte {
	out := slices.Clone(b)
	for i := range out {
		if bytes.HasPrefix(out[i:], []byte("\x02\x00\x00\x0015\x00")) {
			copy(out[i:], "\x02\x00\x00\x0016")
		}
	}
	return out
}

// FuzzScanFeatures: whatever a file holds, it is read or refused; nothing it says about itself is believed beyond its
// bytes (the test's reader would panic), and memory stays within a multiple of the file.
func FuzzScanFeatures(f *testing.F) {
	for _, c := range []struct{ half, scores bool }{{true, true}, {false, false}} {
		b, _, _ := archivetest.File(f, c.half, c.scores)
		f.Add(b)
		f.Add(b[:len(b)-3])
	}
	gaps := listsOf(f, [][]float32{{1, 2}, nil, {5, 6}})
	fields := []arrow.Field{
		{Name: "label", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "features", Type: gaps.DataType(), Nullable: true},
	}
	f.Add(arrowOf(f, true, nil, fields, []arrow.Array{intsOf(0, -9, 1), gaps}))
	f.Add(arrowOf(f, false, []ipc.Option{ipc.WithLZ4()}, fields, []arrow.Array{intsOf(0, -9, 1), gaps}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || !bytes.HasPrefix(b, []byte("ARROW1")) && !bytes.HasPrefix(b, []byte("\xff\xff\xff\xff")) {
			return // CSV is another reader's
		}
		s := &scanned{}
		in := arrowScan{data: b, inflater: &wire.Inflater{}, part: func(p *FeaturePart) error { return s.add(b, p) }}
		if err := in.run(b[0] == 'A'); err == nil && len(s.features) > len(s.label)*s.d {
			t.Errorf("%d features for %d rows of %d", len(s.features), len(s.label), s.d)
		}
	})
}

// TestScanMutatedFiles flips bits and cuts, so that hostile files are met without fuzzing, too.
func TestScanMutatedFiles(t *testing.T) {
	b, _, _ := archivetest.File(t, true, true)
	r := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for range 3000 {
		m := slices.Clone(b)
		for range 1 + r.IntN(4) {
			switch r.IntN(3) {
			case 0:
				m[r.IntN(len(m))] ^= 1 << r.IntN(8)
			case 1:
				binary.LittleEndian.PutUint32(m[r.IntN(len(m)-4):], r.Uint32()>>r.IntN(32))
			case 2:
				at := r.IntN(len(m) - 64)
				copy(m[at:], m[r.IntN(len(m)-64):][:r.IntN(64)])
			}
		}
		if _, err := scanBytes(t, "m", m); err != nil {
			refused++
		}
	}
	if refused < 300 {
		t.Errorf("%d of 3000 mutated files refused", refused)
	}
}
