package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/npy"
)

// element is a number as NumPy stores it with a dtype such as >i4.
func element(descr string, x float64) []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if descr[0] == '>' {
		order = binary.BigEndian
	}
	switch bits := uint64(int64(x)); descr[1:] {
	case "b1", "i1", "u1":
		return []byte{byte(bits)}
	case "i2", "u2":
		return order.AppendUint16(nil, uint16(bits))
	case "i4", "u4":
		return order.AppendUint32(nil, uint32(bits))
	case "i8", "u8":
		return order.AppendUint64(nil, bits)
	case "f2":
		return order.AppendUint16(nil, half.Bits(float32(x)))
	case "f4":
		return order.AppendUint32(nil, math.Float32bits(float32(x)))
	case "f8":
		return order.AppendUint64(nil, math.Float64bits(x))
	case "U3":
		return append(order.AppendUint32(nil, uint32('a'+int(x))), make([]byte, 8)...)
	case "S3":
		return []byte{'a' + byte(x), 0, 0}
	}
	return make([]byte, 16) // of others, which are refused
}

// stored is a matrix in a dtype, by columns if fortran is true.
type stored struct {
	descr   string
	fortran bool
	rows    [][]float64
	shape   []int // nil = that of rows
}

func (s stored) bytes() []byte {
	var b []byte
	for i := range len(s.rows) * len(s.rows[0]) {
		row, column := i/len(s.rows[0]), i%len(s.rows[0])
		if s.fortran {
			row, column = i%len(s.rows), i/len(s.rows)
		}
		b = append(b, element(s.descr, s.rows[row][column])...)
	}
	return b
}

func (s stored) dims() []int {
	if s.shape != nil {
		return s.shape
	}
	return []int{len(s.rows), len(s.rows[0])}
}

// archived writes arrays as numpy.savez does.
func archived(t *testing.T, arrays map[string]stored) string {
	t.Helper()
	var out bytes.Buffer
	w := npy.NewWriter(&out)
	for name, s := range arrays {
		if err := w.WriteArray(name, s.descr, s.bytes(), s.dims()...); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, "a.npz", out.Bytes())
}

// npyFile writes one array.
func npyFile(t *testing.T, name string, s stored) string {
	t.Helper()
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.dims()), " ", ", "), "[]") + ","
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", s.descr,
		map[bool]string{false: "False", true: "True"}[s.fortran], dims)
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return written(t, name, slices.Concat(head, []byte(header), s.bytes()))
}

func written(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDtypes: labels and scores of every dtype that can hold them, in both byte orders, by rows and by columns, beside
// the scores or in a file of their own, are the same labels and scores; others are refused by name.
func TestDtypes(t *testing.T) {
	probs := stored{"<f8", false, [][]float64{{.5, .25, .25}, {.125, .75, .125}, {.25, .25, .5}, {.75, .125, .125}},
		nil}
	column := [][]float64{{0}, {1}, {2}, {1}}
	hot := [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 0}}
	bits := [][]float64{{0}, {1}, {1}, {0}} // of bool
	type labels struct {
		stored
		want    []int32
		refused string
	}
	var all []labels
	want := []int32{0, 1, 2, 1}
	for _, order := range []string{"<", ">"} {
		for _, of := range []string{"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U3", "S3"} {
			text := of == "U3" || of == "S3"
			all = append(all, labels{stored{order + of, false, column, []int{4}}, want, ""},
				labels{stored{order + of, true, column, nil}, want, ""},
				labels{stored{order + of, false, column, []int{1, 4}}, want, ""})
			for _, fortran := range []bool{false, true} {
				l := labels{stored{order + of, fortran, hot, nil}, want, ""}
				if text {
					l.want, l.refused = nil, "holds no labels: want 4 whole numbers, booleans or names"
				}
				all = append(all, l)
			}
		}
	}
	all = append(all, labels{stored{"|b1", false, bits, []int{4}}, []int32{0, 1, 1, 0}, ""},
		labels{stored{"|b1", true, hot, nil}, want, ""},
		labels{stored{"<f4", false, [][]float64{{0}, {1.5}, {2}, {1}}, nil}, nil,
			"label 1.5 at row 1 is no whole number"},
		labels{stored{"<u8", false, [][]float64{{0}, {-1}, {2}, {1}}, nil}, nil, "label 18446744073709551615 at row 1"},
		labels{stored{"<f16", false, column, nil}, nil, "float128[4,1] holds no labels: want 4 whole numbers"},
		labels{stored{"<i4", false, column[:3], []int{3}}, nil, "int32[3] holds no labels: want 4"})
	for _, l := range all {
		name := fmt.Sprintf("%s %v fortran %v", l.descr, l.dims(), l.fortran)
		check := func(where string, got *Table, err error) {
			t.Helper()
			if err == nil && got.Label == nil {
				err = got.NoLabel
			}
			switch {
			case l.refused != "":
				if err == nil || !strings.Contains(err.Error(), l.refused) {
					t.Errorf("%s, %s: got %v, want %s", name, where, err, l.refused)
				}
			case err != nil || !slices.Equal(got.Label, l.want) ||
				!slices.Equal(got.Scores64, slices.Concat(probs.rows...)):
				t.Errorf("%s, %s: got %+v, %v, want %v", name, where, got, err, l.want)
			}
		}
		o := Options{Labels: npyFile(t, "y.npy", l.stored)}
		got, err := Open(npyFile(t, "probs.npy", probs), o)
		check("a file", got, err)
		if !l.fortran {
			got, err = Open(archived(t, map[string]stored{"test_probs": probs, "targets": l.stored}), Options{})
			check("beside the scores", got, err)
		}
	}
	for _, order := range []string{"<", ">"} {
		for _, of := range []string{"f2", "f4", "f8"} {
			for _, fortran := range []bool{false, true} {
				s := stored{order + of, fortran, probs.rows, nil}
				got, err := Open(npyFile(t, "probs.npy", s), Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i, x := range slices.Concat(probs.rows...) {
					if got.score(i) != x {
						t.Errorf("scores of %s, fortran %v: got %v, want %v", s.descr, fortran, got.score(i), x)
					}
				}
			}
		}
	}
	_, err := Open(npyFile(t, "probs.npy", stored{">i4", false, hot, nil}), Options{})
	if want := "int32[4,3] holds no scores: want float16, float32 or float64"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestUnreadableLabels: an array of labels that is no plain array is why there are none.
func TestUnreadableLabels(t *testing.T) {
	probs := stored{"<f4", false, [][]float64{{.5, .5}, {.25, .75}}, nil}
	labels := stored{"|O", false, [][]float64{{0}, {1}}, []int{2}}
	got, err := Open(archived(t, map[string]stored{"probs": probs, "labels": labels}), Options{})
	if err != nil || got.Label != nil || !strings.Contains(fmt.Sprint(got.NoLabel), "labels holds Python objects") {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestLabelsOfOneOfSeveralScores: where the scores are named, a matrix of labels is read too.
func TestLabelsOfOneOfSeveralScores(t *testing.T) {
	probs := stored{"<f4", false, [][]float64{{.5, .5}, {.25, .75}}, nil}
	path := archived(t, map[string]stored{"b_probs": probs, "a_probs": probs,
		"b_labels": {"<i8", false, [][]float64{{0}, {1}}, nil}})
	got, err := Open(path+":b_probs", Options{})
	if err != nil || !slices.Equal(got.Label, []int32{0, 1}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
