package table

import (
	"archive/zip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/internal/realdata"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func testTable(double bool) *Table {
	t := &Table{
		N:       4,
		K:       3,
		Model:   "m",
		Version: "2",
		Label:   []int32{0, -1, 2, 1},
		IDs:     []string{"a", "b", "c,\"d\"", "e"},
		TS: []arrowio.Time{
			1,
			1_600_000_000_123_456_789,
			-5,
			3,
		},
		Weight:   []float32{1, .5, 2, 1},
		Served:   []float32{.5, 1, 0, .25},
		D:        2,
		Features: []float32{1, 2, 3, 4, 5, 6, 7, 1e-20},
		Slices:   map[string][]string{"region": {"eu", "us", "", "eu"}},
	}
	for i := range t.N * t.K {
		if x := math.Sqrt(float64(i)) - 1; double {
			t.Scores64 = append(t.Scores64, x)
		} else {
			t.Scores32 = append(t.Scores32, float32(x))
		}
	}
	return t
}

func TestTableRoundTrip(t *testing.T) {
	for _, ext := range Extensions() {
		for _, double := range []bool{false, true} {
			want := testTable(double)
			path := filepath.Join(t.TempDir(), "t"+ext)
			if err := Write(path, want); err != nil {
				t.Fatal(err)
			}
			got, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if ext == ".csv" && !double { // text is read in float64
				for _, x := range got.Scores64 {
					got.Scores32 = append(got.Scores32, float32(x))
				}
				got.Scores64 = nil
			}
			got.Source, got.Columns = "", nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, float64 %v: got %+v, want %+v", ext, double, got, want)
			}
		}
	}
}

// TestStreamOfManyBatches: a stream is written and read in pieces, lists of half precision among them.
func TestStreamOfManyBatches(t *testing.T) {
	want := &Table{N: streamRows + 3, K: 2}
	for i := range want.N * want.K {
		want.Scores32 = append(want.Scores32, float32(i))
	}
	path := filepath.Join(t.TempDir(), "t.arrows")
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "scores", got.Scores32, want.Scores32)
}

// TestListsInOnePieceOrNot: what appendDense copies is what the elements one by one are.
func TestListsInOnePieceOrNot(t *testing.T) {
	half := array.NewFloat16Builder(memory.DefaultAllocator)
	for i := range 12 {
		half.Append(float16.New(float32(i) / 4))
	}
	halves := half.NewArray()
	for _, elements := range []arrow.Array{
		halves, record.Fixed(arrow.PrimitiveTypes.Float32, []float32{0, .25, .5, .75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5,
			2.75}, nil),
		record.Fixed(arrow.PrimitiveTypes.Float64, []float64{0, .25, .5, .75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75},
			nil),
	} {
		elements.Retain()
		whole := record.List(elements, 4, 3, nil)
		gap := record.List(elements, 4, 3, func(i int) bool { return i == 1 })
		part := array.NewSlice(whole, 1, 3)
		var dense, sparse, sliced []float32
		var double []float64
		for _, err := range []error{
			second(appendLists(&dense, whole, 0, 0, false)), second(appendLists(&sparse, gap, 0, 0, true)),
			second(appendLists(&sliced, part, 0, 0, false)), second(appendLists(&double, whole, 0, 0, false)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range dense {
			if want := float32(i) / 4; x != want || double[i] != float64(want) || i/3 != 1 && sparse[i] != want {
				t.Errorf("%s: element %d is %v, %v and %v, want %v", elements.DataType(), i, x, double[i], sparse[i],
					want)
			}
		}
		equal(t, "slice", sliced, dense[3:9])
	}
}

func second(_ int, err error) error { return err }

func TestMessageIsATableToo(t *testing.T) {
	c := arrowio.Columns{Model: "m", Version: "7", K: 4, Label: []int32{0, 1, 2, 3, 0, 1, -1}}
	for i := range len(c.Label) * c.K {
		c.Logits = append(c.Logits, float32(i)/2)
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "stream")
	if err := os.WriteFile(path, value, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "scores", got.Scores32, c.Logits)
	equal(t, "labels", got.Label, c.Label)
	equal(t, "model", got.Model+"/"+got.Version, "m/7")
}

// npyBytes is a version-1 .npy array.
func npyBytes(descr, shape string, data []byte) string {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape)
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header + string(data)
}

func writeNPZ(t *testing.T, arrays map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, body := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNPZ(t *testing.T) {
	f32 := record.Bytes([]float32{.25, .75, 1, 0, .5, .5})
	f64 := record.Bytes([]float64{.25, .75, 1, 0, -.5, .5})
	y := npyBytes("<i8", "3,", record.Bytes([]int64{1, 0, -1}))
	path := writeNPZ(t, map[string]string{
		"a":       npyBytes("<f4", "3, 2", f32),
		"b":       npyBytes("<f8", "3, 2", f64),
		"p1":      npyBytes("<f4", "3,", f32[:12]),
		"targets": y,
		"other":   npyBytes("|u1", "2,", []byte{1, 2}),
		"region":  npyBytes("<U2", "3,", record.Bytes([]uint32{'e', 'u', 'é', 0, 'x', 0})),
		"object":  npyBytes("|O", "3,", nil),
		"ts":      npyBytes("<M8[s]", "3,", record.Bytes([]int64{1, 2, 3})),
	})
	a, err := Open(path+":a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a", a.Scores32, []float32{.25, .75, 1, 0, .5, .5})
	equal(t, "labels", a.Label, []int32{1, 0, -1})
	equal(t, "region", a.Slices["region"], []string{"eu", "é", "x"})
	equal(t, "ts", a.TS, []arrowio.Time{1e9, 2e9, 3e9})
	if !a.Probs || !strings.Contains(a.Source, "sums to 1") || !strings.Contains(a.Source, "labels targets") {
		t.Errorf("got probs %v by %q", a.Probs, a.Source)
	}
	b, err := Open(path, Options{Array: "b", Labels: "targets"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "b", b.Scores64, []float64{.25, .75, 1, 0, -.5, .5})
	if b.Probs || !strings.Contains(b.Source, "row 2 holds -0.5") {
		t.Errorf("got probs %v by %q", b.Probs, b.Source)
	}
	p, err := Open(path, Options{Array: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "binary", p.Scores32, []float32{.75, .25, .25, .75, 0, 1})

	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "which array holds the scores? name it; there are: "},
		{Options{Array: "zzz"}, `no array "zzz"; there are: `},
		{Options{Array: "targets"}, "array targets int64[3] holds no scores"},
		{Options{Array: "a", Labels: "other"}, "array other uint8[2] holds no labels: want 3"},
		{Options{Array: "object"}, "array object"},
	} {
		if _, err := Open(path, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.o, err, c.want)
		}
	}
}

// TestNPZLeavesNothingOut: weights of any numbers count, and an array that does not fit is an error.
func TestNPZLeavesNothingOut(t *testing.T) {
	probs := npyBytes("<f4", "3, 2", record.Bytes([]float32{.25, .75, 1, 0, .5, .5}))
	y := func(name string, labels ...int64) map[string]string {
		return map[string]string{"probs": probs, name: npyBytes("<i8", fmt.Sprintf("%d,", len(labels)),
			record.Bytes(labels))}
	}
	with := func(name, array string) map[string]string {
		arrays := y("label", 1, 0, 1)
		arrays[name] = array
		return arrays
	}
	for name, arrays := range map[string]map[string]string{
		"whole numbers": with("weight", npyBytes("<i4", "3,", record.Bytes([]int32{1, 2, 3}))),
		"a column":      with("sample_weight", npyBytes("<f8", "3, 1", record.Bytes([]float64{1, 2, 3}))),
		"another case":  with("Weight", npyBytes("<f4", "3,", record.Bytes([]float32{1, 2, 3}))),
	} {
		got, err := Open(writeNPZ(t, arrays), Options{Probs: "probs"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		equal(t, name, got.Weight, []float32{1, 2, 3})
	}
	for want, arrays := range map[string]map[string]string{
		"array weight int32[2]: want 3 values, one for each row of scores": with("weight",
			npyBytes("<i4", "2,", record.Bytes([]int32{1, 2}))),
		"array weight U1[3] holds no weights: want numbers": with("weight",
			npyBytes("<U1", "3,", record.Bytes([]uint32{'a', 'b', 'c'}))),
		"array labels int64[2]: want 3 values, one for each row of scores": y("labels", 1, 0),
	} {
		arrays["fold"] = npyBytes("<i8", "3,", record.Bytes([]int64{0, 1, 1}))
		if _, err := Open(writeNPZ(t, arrays), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	// Weights of the classes, say, are nobody's concern where weights are not asked for.
	other := with("weight", npyBytes("<f4", "2,", record.Bytes([]float32{1, 2})))
	if got, err := Open(writeNPZ(t, other), Options{Probs: "probs", NoWeights: true}); err != nil || got.Weight != nil {
		t.Errorf("without weights: %v, %v", got, err)
	}
	matrix := with("weight", npyBytes("<f4", "2, 2", record.Bytes([]float32{1, 2, 3, 4})))
	if got, err := Open(writeNPZ(t, matrix), Options{Probs: "probs"}); err != nil || got.Weight != nil {
		t.Errorf("weights of a model: %v, %v", got, err)
	}
	said := ""
	got, err := Open(writeNPZ(t, y("fold", 0, 1, 1)), Options{Note: func(s string) { said += s }})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "labels", got.Label, []int32{0, 1, 1})
	if !strings.HasSuffix(said, "labels from fold") {
		t.Errorf("said %q", said)
	}
}

// TestClassesByNamesOfNothing: text that stands for no value is a class where a class has the name.
func TestClassesByNamesOfNothing(t *testing.T) {
	const csv = "probs_0,probs_1,label\n0.9,0.1,none\n0.2,0.8,spam\n0.3,0.7,\n0.3,0.7,nan\n"
	path := writeOdd(t, csv)
	got, err := Open(path, Options{Classes: []string{"none", "spam"}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "classes by flag", got.Label, []int32{0, 1, -1, -1})
	got, err = Open(writeOdd(t, strings.NewReplacer("probs_0", "proba_none", "probs_1", "proba_spam").Replace(csv)),
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "classes by columns", got.Label, []int32{0, 1, -1, -1})
	got, err = Open(writeOdd(t, strings.NewReplacer("spam", "1").Replace(csv)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "numbers", got.Label, []int32{-1, 1, -1, -1})
}

// TestTwoStreamsInAFile: the rows of the second are not left out.
func TestTwoStreamsInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.arrows")
	if err := Write(path, testTable(false)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, b...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "more follows the end") {
		t.Errorf("got %v", err)
	}
}

func TestCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	open := func(text string) (*Table, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Open(path, Options{})
	}
	got, err := open("\ufeffprob,label,ts,model\n0.25,1,2020-01-01T00:00:00Z,a\n1,,5,b\n")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "scores", got.Scores64, []float64{.75, .25, 0, 1})
	equal(t, "label", got.Label, []int32{1, -1})
	equal(t, "ts", got.TS, []arrowio.Time{1_577_836_800_000_000_000, 5e9})
	equal(t, "two models", got.Slices["model"], []string{"a", "b"})
	for text, want := range map[string]string{
		"":                                 "EOF",
		"\n  \n":                           "the file has no text: its first line must name the columns",
		"logits_0,logits_1\n1,1e400\n":     "column logits_1: 1e400 is too large, allowed is up to 1.8e308",
		"logits_0,logits_1\n1,1_0\n":       "column logits_1: 1_0 is no number",
		"a,b\n1,2\n":                       "none that --logits or --prob names; there are: a, b",
		"logits_0,logits_2\n1,2\n":         "column logits_2 where logits_1 is due",
		"logits_0,label\n1,0\n":            "1 scores a row, at least 2",
		"logits_0,logits_1\n1,x\n":         "line 2, column logits_1",
		"logits_0,logits_1\n":              "no rows",
		"logits_0,logits_1,label\n1,2,2\n": "label 2 at row 0, allowed are 0 to 1",
		"logit,logit\n1,2\n":               "column logit occurs twice",
	} {
		if _, err := open(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestBrokenFilesAreErrors(t *testing.T) {
	dir := t.TempDir()
	for _, ext := range []string{".arrow", ".parquet"} {
		path := filepath.Join(dir, "t"+ext)
		if err := Write(path, testTable(false)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b[:len(b)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Options{}); err == nil {
			t.Errorf("half of a %s file was accepted", ext)
		}
	}
	if err := Write(filepath.Join(dir, "t.xls"), testTable(false)); err == nil {
		t.Error("extension .xls was accepted")
	}
}

func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file     string
		n, k     int
		probs    bool
		accuracy float64
	}{
		{"c10_resnet18_78acc_wasscal_logits.npz", 10000, 10, false, .7784},
		{"c100_wideresnet-16-4_netcal_probs.npz", 10000, 100, true, .7543},
		{"c10jpeg_resnet_logits.npz:resnet20", 10000, 10, false, .8103},
		{"mnist_cnn_metacal.npz", 10000, 10, false, .9917},
		{"mnist_cnn_metacal.npz:train_logits", 60000, 10, false, math.NaN()},
	} {
		t.Run(c.file, func(t *testing.T) {
			file, array, _ := strings.Cut(c.file, ":")
			got, err := Open(realdata.File(t, file), Options{Array: array})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, c.file, []any{got.N, got.K, got.Probs, len(got.Label)}, []any{c.n, c.k, c.probs, c.n})
			hits := 0
			for i, y := range got.Label {
				row := got.Scores32[i*c.k : (i+1)*c.k]
				arg := 0
				for j, x := range row {
					if x > row[arg] {
						arg = j
					}
				}
				if int32(arg) == y {
					hits++
				}
			}
			if acc := float64(hits) / float64(c.n); !math.IsNaN(c.accuracy) && math.Abs(acc-c.accuracy) > 5e-5 {
				t.Errorf("got accuracy %v, want %v", acc, c.accuracy)
			}
		})
	}
}

// TestMissingTextStaysNull: what is missing in a text column and among the ids is null in what is written, too.
func TestMissingTextStaysNull(t *testing.T) {
	want := testTable(false)
	want.IDs[1] = ""
	rec, err := want.record()
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	for i, null := range map[string]int{"id": 1, "region": 2} {
		col := rec.Column(rec.Schema().FieldIndices(i)[0])
		if f, _ := rec.Schema().FieldsByName(i); col.NullN() != 1 || !col.IsNull(null) || !f[0].Nullable {
			t.Errorf("%s: %v, want null at row %d alone", i, col, null)
		}
	}
}
