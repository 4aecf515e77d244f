package table

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio/internal/archivetest"
	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/parquet"
)

// inParts is a record as an Arrow file of many batches, as a stream of them, and, of the types that a table has, as
// Parquet, which is read in parts.
func inParts(t *testing.T, names []string, columns ...arrow.Array) map[string][]byte {
	t.Helper()
	var fields []arrow.Field
	for i, c := range columns {
		fields = append(fields, arrow.Field{Name: names[i], Type: c.DataType(), Nullable: true})
	}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(columns[0].Len()))
	file, stream, pq := &archivetest.Memory{}, &archivetest.Memory{}, &bytes.Buffer{}
	fw, err := ipc.NewFileWriter(file, ipc.WithSchema(rec.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	sw := ipc.NewWriter(stream, ipc.WithSchema(rec.Schema()))
	const rows = 1000
	for at := int64(0); at < rec.NumRows(); at += rows {
		part := rec.NewSlice(at, min(at+rows, rec.NumRows()))
		for _, w := range []interface{ Write(arrow.Record) error }{fw, sw} {
			if err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(fw.Close(), sw.Close()); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{"file": file.Bytes, "stream": stream.Bytes}
	if columns[0].DataType().ID() == arrow.FIXED_SIZE_LIST && columns[1].DataType().ID() == arrow.INT32 {
		if err := parquet.Write(pq, rec); err != nil {
			t.Fatal(err)
		}
		out["parquet"] = pq.Bytes()
	}
	return out
}

// TestRowsOfErrorsAreTheFiles: a row that is refused has its number in the file, not in the part that is being read.
func TestRowsOfErrorsAreTheFiles(t *testing.T) {
	const n, bad = 9000, 8500
	fixed := func(null int) arrow.Array {
		values := record.Fixed(arrow.PrimitiveTypes.Float32, make([]float32, 2*n), nil)
		return record.List(values, n, 2, func(i int) bool { return i == null })
	}
	ragged := make([][]float32, n)
	for i := range ragged {
		ragged[i] = []float32{1, 2}
	}
	ragged[bad] = ragged[bad][:1]
	plain := record.Fixed(arrow.PrimitiveTypes.Int32, make([]int32, n), nil)
	labels := make([]int64, n)
	labels[bad] = 1 << 40
	at := fmt.Sprintf("row %d", bad)
	for name, c := range map[string]struct{ scores, label arrow.Array }{
		"null":   {fixed(bad), plain},
		"ragged": {listsOf(t, ragged), plain},
		"label":  {fixed(-1), intsOf(labels...)},
	} {
		for format, content := range inParts(t, []string{"logits", "label"}, c.scores, c.label) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), at) {
				t.Errorf("%s, %s: got %v, want %s", name, format, err, at)
			}
		}
	}
	for format, content := range inParts(t, []string{"features", "label"}, fixed(-1), intsOf(labels...)) {
		if _, err := scanBytes(t, "f", content); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("features, %s: got %v, want %s", format, err, at)
		}
	}
}

// TestFilesThatAreCutOff: it is said of every format in words.
func TestFilesThatAreCutOff(t *testing.T) {
	parts := inParts(t, []string{"logits", "label"}, listsOf(t, [][]float32{{1, 2}}), intsOf(0))
	for name, content := range map[string][]byte{
		"csv.gz":  []byte(zipped(t, oddCSV))[:60],
		"json.gz": []byte(zipped(t, oddJSON))[:60],
		"file":    parts["file"][:300],
		"stream":  parts["stream"][:len(parts["stream"])-40],
		"npz":     []byte("PK\x03\x04 and so on"),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "the file is cut off") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestColumnsThatAreNoLabels: a column by that name whose type can be no label is not passed over without a word.
func TestColumnsThatAreNoLabels(t *testing.T) {
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	b.Append([]byte("1"))
	path := filepath.Join(t.TempDir(), "f")
	content := inParts(t, []string{"logits", "label", "age"}, listsOf(t, [][]float32{{1, 2}}), b.NewArray(), intsOf(7))
	if err := os.WriteFile(path, content["file"], 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path, Options{})
	if err != nil || got.Label != nil || got.NoLabel == nil ||
		!strings.HasPrefix(got.NoLabel.Error(), "column label has another type: want whole numbers") {
		t.Errorf("got %+v, %v", got, err)
	}
	equal(t, "columns left out", got.Left, "label, age")
}

// TestWholeNumbersAreScoresByName: quantised logits, in an array whose name says what they are, and in no other.
func TestWholeNumbersAreScoresByName(t *testing.T) {
	whole := stored{"|i1", false, [][]float64{{-3, 4}, {1, 0}}, nil}
	got, err := Open(archived(t, map[string]stored{"logits": whole}), Options{})
	if err != nil || got.Probs {
		t.Fatalf("got %+v, %v", got, err)
	}
	equal(t, "scores", got.Scores64, []float64{-3, 4, 1, 0})
	for name, want := range map[string]bool{"raw": true, "": false} {
		_, err := Open(archived(t, map[string]stored{"raw": whole}), Options{Logits: name})
		if (err == nil) != want {
			t.Errorf("--logits %q: got %v", name, err)
		}
	}
}

// TestConfidencesForProbabilities: one number a row that is never below one half may be no probability of class 1.
func TestConfidencesForProbabilities(t *testing.T) {
	for below, want := range map[float64]bool{.5: true, .25: false} {
		text := fmt.Sprintf("prob,label\n%v,0\n", below) + strings.Repeat("0.75,1\n", 60)
		rows := [][]float64{{below}}
		for range 60 {
			rows = append(rows, []float64{.75})
		}
		for _, path := range []string{writeOdd(t, text), archived(t, map[string]stored{
			"prob": {"<f8", false, rows, []int{61}},
		})} {
			said := ""
			_, err := Open(path, Options{Note: func(s string) { said += s }})
			if err != nil || strings.Contains(said, "taken as that of class 1") != want {
				t.Errorf("%s from %v: got %q, %v", path, below, said, err)
			}
		}
	}
}

// TestIPCIsAFile: other programs take .ipc for the format with a footer.
func TestIPCIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.ipc")
	if err := Write(path, testTable(false)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, []byte("ARROW1")) {
		t.Errorf("%.8q, %v", b, err)
	}
}
