package arrowio

import (
	"bytes"
	"math"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// readOne reads a stream of one record with the Arrow library's reader and calls f with the record.
func readOne(t *testing.T, v []byte, f func(arrow.Record)) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	r, err := ipc.NewReader(bytes.NewReader(v), ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatalf("no record: %v", r.Err())
	}
	f(r.Record())
	if r.Next() {
		t.Error("more than one record")
	}
}

func TestArrowReadsWhatIsEncoded(t *testing.T) {
	c := testColumns(9, 4)
	readOne(t, mustEncode(t, c), func(rec arrow.Record) {
		equal(t, "rows", rec.NumRows(), int64(9))
		equal(t, "ids", rec.Column(0).(*array.String).Value(8), "id-8")
		l := rec.Column(2).(*array.FixedSizeList)
		equal(t, "logits", l.ListValues().(*array.Float32).Float32Values(), c.Logits)
		v, _ := rec.Schema().Metadata().GetValue(MetaVersion)
		equal(t, "version", v, "7")
		equal(t, "null labels", rec.Column(3).NullN(), 2)
	})
}

func TestEncodeCalibrated(t *testing.T) {
	c := Columns{Model: "m", Version: "7", K: 2, IDs: []string{"a", "bc", "d"}, TS: []Time{1, 2, 3},
		Logits: []float32{0, 1, float32(math.NaN()), 0, 1, 0}}
	b := decodeOne(t, Options{}, mustEncode(t, c), Predictions)
	probs := []float32{.25, .75, 0, 0, .5, .5}
	v, err := EncodeCalibrated(b, probs, CalibratedOptions{Calibrator: "3"})
	if err != nil {
		t.Fatal(err)
	}
	readOne(t, v, func(rec arrow.Record) {
		md := rec.Schema().Metadata()
		for key, want := range map[string]string{MetaModel: "m", MetaVersion: "7", MetaCalibrator: "3"} {
			got, _ := md.GetValue(key)
			equal(t, key, got, want)
		}
		equal(t, "id", rec.Column(0).(*array.String).Value(1), "bc")
		equal(t, "ts", rec.Column(1).(*array.Timestamp).Value(2), arrow.Timestamp(3))
		p := rec.Column(2).(*array.FixedSizeList)
		equal(t, "nulls", []bool{p.IsNull(0), p.IsNull(1), p.IsNull(2)}, []bool{false, true, false})
		equal(t, "probs", p.ListValues().(*array.Float32).Float32Values(), probs)
	})
	if v, err = EncodeCalibrated(b, probs, CalibratedOptions{TopClass: true, Calibrator: "3"}); err != nil {
		t.Fatal(err)
	}
	readOne(t, v, func(rec arrow.Record) {
		class, conf := rec.Column(2).(*array.Int32), rec.Column(3).(*array.Float32)
		equal(t, "class", []int32{class.Value(0), class.Value(2)}, []int32{1, 0})
		equal(t, "confidence", []float32{conf.Value(0), conf.Value(2)}, []float32{.75, .5})
		equal(t, "rejected", class.IsNull(1) && conf.IsNull(1), true)
	})
	// What is calibrated can be read as predictions, rejected rows as null.
	v, _ = EncodeCalibrated(b, probs, CalibratedOptions{Calibrator: "3"})
	again := decodeOne(t, Options{}, v, Predictions)
	equal(t, "again", again.Reject, []string{"", NullRow, ""})
	equal(t, "ids again", again.IDs, b.IDs)
	if _, err := EncodeCalibrated(b, probs[:2], CalibratedOptions{}); err == nil {
		t.Error("2 probabilities for 3 rows were accepted")
	}
	if _, err := EncodeCalibrated(&Batch{N: 1, K: 2}, probs[:2], CalibratedOptions{}); err == nil {
		t.Error("a batch that was not decoded was accepted")
	}
}

func TestEncodeErrors(t *testing.T) {
	for name, c := range map[string]Columns{
		"no scores":  {IDs: []string{"a"}},
		"both":       {K: 1, Logits: []float32{1}, Probs: []float32{1}},
		"k":          {K: 2, Logits: []float32{1, 2, 3}},
		"no k":       {Logits: []float32{1, 2, 3}},
		"rows":       {K: 2, Logits: []float32{1, 2}, Label: []int32{1, 2}},
		"slice rows": {K: 2, Logits: []float32{1, 2}, Slices: []StringColumn{{"a", []string{"x", "y"}}}},
	} {
		if _, err := EncodePredictions(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := EncodeLabels("m", "1", []string{"a"}, nil, nil); err == nil {
		t.Error("labels without labels were accepted")
	}
}

// TestCalibratedParts: what is too large for one message is several, with the rows of the one in their order.
func TestCalibratedParts(t *testing.T) {
	const n, k = 1000, 10
	c := testColumns(n, k)
	c.Logits[3*k] = float32(math.NaN())
	b := decodeOne(t, Options{}, mustEncode(t, c), Predictions)
	probs := make([]float32, n*k)
	for i := range probs {
		probs[i] = float32(i%k) / 45
	}
	for _, top1 := range []bool{false, true} {
		whole, err := EncodeCalibrated(b, probs, CalibratedOptions{TopClass: top1, Calibrator: "1"})
		if err != nil {
			t.Fatal(err)
		}
		const limit = 8 << 10
		parts, err := EncodeCalibratedParts(b, probs, CalibratedOptions{TopClass: top1, Calibrator: "1",
			MaxBytes: limit})
		if err != nil {
			t.Fatal(err)
		}
		readOne(t, whole, func(want arrow.Record) {
			at := int64(0)
			for i, v := range parts {
				if len(v) > limit {
					t.Errorf("part %d has %d bytes, want at most %d", i, len(v), limit)
				}
				readOne(t, v, func(got arrow.Record) {
					same := want.NewSlice(at, at+got.NumRows())
					defer same.Release()
					if !array.RecordEqual(same, got) || !got.Schema().Equal(want.Schema()) {
						t.Errorf("part %d differs from rows %d to %d", i, at, at+got.NumRows())
					}
					at += got.NumRows()
				})
			}
			if at != n || len(parts) < 4 {
				t.Errorf("%d parts with %d rows, want several, with %d", len(parts), at, n)
			}
		})
	}
	one, err := EncodeCalibratedParts(b, probs, CalibratedOptions{MaxBytes: 10})
	if err != nil || len(one) != n {
		t.Errorf("%d parts, %v; want one a row", len(one), err)
	}
}
