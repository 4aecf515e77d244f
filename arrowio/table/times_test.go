package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// TestTimesOfNumbers: numbers have the unit that their size tells in records too, each the same one. 0 is 1970 in any.
func TestTimesOfNumbers(t *testing.T) {
	for _, c := range []struct {
		cells []string
		want  []arrowio.Time
	}{
		{[]string{"1700000000", "0", "1700000001.25", "1.7e9"},
			[]arrowio.Time{17e17, 0, 1_700_000_001_250_000_000, 17e17}},
		{[]string{"0", "1700000000001"}, []arrowio.Time{0, 1_700_000_000_001_000_000}},
		{[]string{"1700000000000001"}, []arrowio.Time{1_700_000_000_000_001_000}},
		{[]string{"1700000000000000001"}, []arrowio.Time{1_700_000_000_000_000_001}},
		{[]string{"1", "2.5"}, []arrowio.Time{1e9, 25e8}},
		{[]string{"2023-11-14T22:13:20Z", "5"}, []arrowio.Time{17e17, 5e9}},
	} {
		got, err := openTimes(t, c.cells, Options{Time: "ts"})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint(c.cells), got.TS, c.want)
	}
}

// TestTimesThatAreNone: a file is read without times, and says why, if no flag names them; else they are an error. A
// value of another unit is one: it would move all rows, or be of 1970 itself.
func TestTimesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		cells []string
		want  string
	}{
		{[]string{"1700000000", "253402300799"}, "253402300799 is a time in milliseconds by its size, " +
			"1700000000 at row 0 one in seconds: allowed is one unit in all rows"},
		{[]string{"0", "1700000000000.5", "1700000000"}, "1700000000 is a time in seconds by its size, " +
			"1700000000000.5 at row 1 one in milliseconds"},
		{[]string{"1700000000", "99999999999"}, "99999999999 is outside the years 1678 to 2261 in seconds"},
		{[]string{"1700000000", "20260301"}, "20260301 is no time since 1970 but the date 2026-03-01: write it so, or"},
		{[]string{"0", "46082.5"}, "46082.5 is of 1970-01-01 as seconds, and a date as days of a spreadsheet: write a"},
		{[]string{"20260301.0"}, "20260301.0 is no time since 1970 but the date 2026-03-01"},
		{[]string{"20260301123000"}, "20260301123000 is no time since 1970 but the date 2026-03-01T12:30:00"},
		{[]string{"1700000000", ""}, `"" is neither a time such as 2026-01-31T12:00:00Z nor a number since 1970`},
		{[]string{"1700000000", "31.1.2026"}, "31.1.2026 is neither a time such as 2026-01-31T12:00:00Z"},
		{[]string{"1700000000", "2026-03-01 12:00:00 EST"},
			"2026-03-01 12:00:00 EST: EST is the name of several zones"},
	} {
		if _, err := openTimes(t, c.cells, Options{Time: "ts"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, named: got %v, want %s", c.cells, err, c.want)
		}
		said := ""
		got, err := openTimes(t, c.cells, Options{Note: func(s string) { said += s }})
		want := fmt.Sprintf("column ts: row %d: %s", len(c.cells)-1, c.want)
		if err != nil || got.TS != nil || got.NoTime == nil || !strings.Contains(got.NoTime.Error(), want) ||
			!strings.Contains(said, "read without times: "+want) {
			t.Errorf("%q: got %v, %+v, said %q; want %s", c.cells, err, got, said, want)
		}
	}
}

// TestTimesOfArrays: columns of numbers and arrays go by the rule of text.
func TestTimesOfArrays(t *testing.T) {
	probs := record.Slab([]float32{.5, .5, .25, .75}, 2)
	for name, ts := range map[string]arrow.Array{
		"int64":   record.Fixed(arrow.PrimitiveTypes.Int64, []int64{1_700_000_000, 253_402_300_799}, nil),
		"float64": record.Fixed(arrow.PrimitiveTypes.Float64, []float64{1_700_000_000, 253_402_300_799}, nil),
	} {
		got, err := openColumns(t, []string{"probs", "ts"}, []arrow.Array{probs, ts})
		if err != nil || got.NoTime == nil ||
			!strings.Contains(got.NoTime.Error(), "column ts: row 1: 253402300799 is a time in milliseconds") {
			t.Errorf("%s: got %v, %+v", name, err, got)
		}
	}
	path := writeNPZ(t, map[string]string{
		"label": npyBytes("<i8", "2,", record.Bytes([]int64{0, 1})),
		"probs": npyBytes("<f4", "2, 2", record.Bytes([]float32{.5, .5, .25, .75})),
		"ts":    npyBytes("<i8", "2,", record.Bytes([]int64{1_700_000_000, 253_402_300_799})),
	})
	if got, err := Open(path, Options{}); err != nil || got.NoTime == nil ||
		!strings.Contains(got.NoTime.Error(), "row 1: 253402300799 is a time in milliseconds") {
		t.Errorf("npz: got %v, %+v", err, got)
	}
	if _, err := Open(path, Options{Time: "ts"}); err == nil {
		t.Error("npz: a named array of two units is taken")
	}
}

// TestDatesBeyondRows: a date that nanoseconds do not reach is an error, and no other date.
func TestDatesBeyondRows(t *testing.T) {
	probs := record.Slab([]float32{.5, .5, .25, .75}, 2)
	for want, ts := range map[string]arrow.Array{
		"column ts: row 1: 9999-12-31 is outside the years 1678 to 2261": record.Fixed(arrow.FixedWidthTypes.Date32,
			[]int32{0, 2932896}, nil),
		"column ts: row 1: 0001-01-01 is outside the years 1678 to 2261": record.Fixed(arrow.FixedWidthTypes.Date64,
			[]int64{0, -62135596800000}, nil),
	} {
		got, err := openColumns(t, []string{"probs", "ts"}, []arrow.Array{probs, ts})
		if err != nil || got.NoTime == nil || !strings.Contains(got.NoTime.Error(), want) {
			t.Errorf("got %v, %+v, want %s", err, got, want)
		}
	}
}

// TestNoneYet: an optional column that has no value yet is one, though its writer knew no type for it.
func TestNoneYet(t *testing.T) {
	probs := record.Slab([]float32{.5, .5, .25, .75}, 2)
	for _, name := range []string{"label", "weight", "served", "id", "ts", "features", "model", "region"} {
		got, err := openColumns(t, []string{"probs", name}, []arrow.Array{probs, array.NewNull(2)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "label" && fmt.Sprint(got.Label) != "[-1 -1]" || got.Features != nil || got.TS != nil ||
			name == "weight" && fmt.Sprint(got.Weight) != "[1 1]" ||
			name == "served" && got.Served[0] == got.Served[0] {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestStructs: the fields of a struct are columns, and a row that is null as a struct is so in each.
func TestStructs(t *testing.T) {
	number := func(v ...float64) arrow.Array { return record.Fixed(arrow.PrimitiveTypes.Float64, v, nil) }
	both := arrow.StructOf(arrow.Field{Name: "dog", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		arrow.Field{Name: "cat", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	children := []arrow.ArrayData{number(.25, .75, .5).Data(), number(.75, .25, .5).Data()}
	full := record.Array(both, 3, 0, children, nil)
	got, err := openColumns(t, []string{"probs"}, []arrow.Array{full})
	if err != nil || fmt.Sprint(got.Columns) != "[probs.dog probs.cat]" || got.Scores64[0] != .25 {
		t.Errorf("got %v, %+v", err, got)
	}
	if got, err = Open(writeOdd(t, string(arrowOf(t, true, nil, []arrow.Field{{Name: "probs", Type: both}},
		[]arrow.Array{full}))), Options{Classes: []string{"cat", "dog"}}); err != nil || got.Scores64[0] != .75 {
		t.Errorf("by classes: got %v, %+v", err, got)
	}
	holes := record.Array(both, 3, 1, children, []byte{5})
	if got, err = openColumns(t, []string{"probs"}, []arrow.Array{holes}); err != nil || got.Scores64[0] != .25 ||
		got.Scores64[2] == got.Scores64[2] || got.Scores64[3] == got.Scores64[3] {
		t.Errorf("a null struct: got %v, %+v", err, got)
	}
}

// TestTruths: true and false are the classes of these names, else 1 and 0, in Arrow as in text.
func TestTruths(t *testing.T) {
	probs, labels := record.Slab([]float32{.5, .5, .25, .75}, 2), record.Array(arrow.FixedWidthTypes.Boolean, 2, 0, nil,
		nil, []byte{2})
	fields := []arrow.Field{{Name: "probs", Type: probs.DataType()}, {Name: "label", Type: labels.DataType()}}
	for classes, want := range map[string]string{"": "[0 1]", "no,yes": "[0 1]", "True,False": "[1 0]",
		"1,0": "[1 0]"} {
		for name, text := range map[string]string{
			"Arrow": string(arrowOf(t, true, nil, fields, []arrow.Array{probs, labels})),
			"CSV":   "probs_0,probs_1,label\n.5,.5,false\n.25,.75,TRUE\n",
			"JSON":  `{"probs":[0.5,0.5],"label":false}{"probs":[0.25,0.75],"label":true}`,
		} {
			o := Options{}
			if classes != "" {
				o.Classes = strings.Split(classes, ",")
			}
			got, err := Open(writeOdd(t, text), o)
			if err != nil || fmt.Sprint(got.Label) != want {
				t.Errorf("%s, classes %q: got %v, %+v, want %s", name, classes, err, got, want)
			}
		}
	}
}

func openTimes(t *testing.T, cells []string, o Options) (*Table, error) {
	t.Helper()
	text := "prob,ts\n"
	for _, c := range cells {
		text += "0.5," + c + "\n"
	}
	return Open(writeOdd(t, text), o)
}

// openColumns opens an Arrow file of columns, all nullable.
func openColumns(t *testing.T, names []string, columns []arrow.Array) (*Table, error) {
	t.Helper()
	var fields []arrow.Field
	for i, c := range columns {
		fields = append(fields, arrow.Field{Name: names[i], Type: c.DataType(), Nullable: true})
	}
	return Open(writeOdd(t, string(arrowOf(t, true, nil, fields, columns))), Options{})
}
