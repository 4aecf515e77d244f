package table

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// writeArrays writes t as numpy.savez would: uncompressed arrays named as the schema's columns. Labels that are not known
// are -1, times are datetime64[ns], text is of fixed width.
func writeArrays(w *os.File, t *Table) error {
	scores := "logits"
	if t.Probs {
		scores = "probs"
	}
	if len(t.Scores32)+len(t.Scores64) != t.N*t.K {
		return fmt.Errorf("%d scores for %d rows of %d classes", len(t.Scores32)+len(t.Scores64), t.N, t.K)
	}
	z := npzWriter{zip.NewWriter(w)}
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if t.Scores64 != nil {
		add(z.array(scores, "<f8", record.Bytes(t.Scores64), t.N, t.K))
	} else {
		add(z.array(scores, "<f4", record.Bytes(t.Scores32), t.N, t.K))
	}
	if t.Label != nil {
		add(z.array("label", "<i4", record.Bytes(t.Label), t.N))
	}
	if t.TS != nil {
		add(z.array("ts", "<M8[ns]", record.Bytes(t.TS), t.N))
	}
	if t.IDs != nil {
		add(z.text("id", t.IDs))
	}
	if t.Features != nil {
		add(z.array("features", "<f4", record.Bytes(t.Features), t.N, t.D))
	}
	for _, c := range []struct {
		name string
		v    []float32
	}{{"weight", t.Weight}, {"served", t.Served}} {
		if c.v != nil {
			add(z.array(c.name, "<f4", record.Bytes(c.v), t.N))
		}
	}
	for _, c := range [][2]string{{"model", t.Model}, {"version", t.Version}} {
		if c[1] != "" {
			add(z.text(c[0], slices.Repeat([]string{c[1]}, t.N)))
		}
	}
	for _, name := range sortedKeys(t.Slices) {
		add(z.text(name, t.Slices[name]))
	}
	for _, err := range append(errs, z.Close()) {
		if err != nil {
			return err
		}
	}
	return nil
}

type npzWriter struct{ *zip.Writer }

// array writes an array in the .npy format, version 1, with its elements at a multiple of 64 bytes from its start.
func (z npzWriter) array(name, descr string, data []byte, shape ...int) error {
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	if len(shape) == 1 {
		dims += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	const prefix, align = 10, 64
	header += strings.Repeat(" ", (align-(prefix+len(header)+1)%align)%align) + "\n"
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), byte(len(header) >> 8)})+header); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// text writes strings as UTF-32 of the longest one's width, NumPy's str.
func (z npzWriter) text(name string, v []string) error {
	width := 1
	for _, s := range v {
		width = max(width, utf8.RuneCountInString(s))
	}
	const most = 1 << 28
	if len(v)*width > most {
		return fmt.Errorf("array %s: %d strings of up to %d characters, which NumPy pads to one width: write another format", name, len(v), width)
	}
	runes := make([]int32, len(v)*width)
	for i, s := range v {
		j := i * width
		for _, r := range s {
			runes[j] = r
			j++
		}
	}
	return z.array(name, fmt.Sprintf("<U%d", width), record.Bytes(runes), len(v))
}
