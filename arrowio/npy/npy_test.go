package npy_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/npy"
)

// file is an array as NumPy writes it, of version 1.
func file(descr, shape, data string) string {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape)
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header + data
}

func parse(t *testing.T, b string) *npy.Array {
	t.Helper()
	a, err := npy.Parse("a", []byte(b))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFortranOrder(t *testing.T) {
	a := parse(t, strings.Replace(file("|u1", "2, 3", "\x01\x04\x02\x05\x03\x06"), "False", "True ", 1))
	for i := range 6 {
		if a.Int(i) != int64(i+1) {
			t.Errorf("element %d is %d", i, a.Int(i))
		}
	}
}

func TestTypes(t *testing.T) {
	for descr, data := range map[string]string{
		"|i1": "\xfe", "<i2": "\xfe\xff", "<i4": "\xfe\xff\xff\xff", "<i8": "\xfe\xff\xff\xff\xff\xff\xff\xff",
		">i1": "\xfe", ">i2": "\xff\xfe", ">i4": "\xff\xff\xff\xfe", ">i8": "\xff\xff\xff\xff\xff\xff\xff\xfe",
	} {
		if v := parse(t, file(descr, "1,", data)).Int(0); v != -2 {
			t.Errorf("%s: got %d, want -2", descr, v)
		}
	}
	halves := parse(t, file("<f2", "2,", "\x00\x3c\x00\xc0"))
	if v := halves.Float64s(); !slices.Equal(v, []float64{1, -2}) {
		t.Errorf("float16: got %v", v)
	}
	if text := parse(t, file("<U2", "1,", "\xe9\x00\x00\x00\x00\x00\x00\x00")).Text(0); text != "é" {
		t.Errorf("text %q", text)
	}
	for what, bad := range map[string]string{
		"too few bytes":   file("<f4", "2,", "\x01"),
		"shape":           file("<f4", "9999999999,9999999999", ""),
		"cut":             file("<f4", "1,", "1234")[:20],
		"empty":           "",
		"size 0":          file("<f0", "1,", ""),
		"objects":         file("|O", "1,", ""),
		"long header":     "\x93NUMPY\x02\x00\xff\xff\xff\xff",
		"another version": "\x93NUMPY\x02\x00{}",
	} {
		if _, err := npy.Parse("a", []byte(bad)); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

// archive is an .npz file; names that end in z are compressed.
func archive(t testing.TB, arrays map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, body := range arrays {
		h := &zip.FileHeader{Name: name + ".npy"}
		if strings.HasSuffix(name, "z") {
			h.Method = zip.Deflate
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEntries: an array's elements are read where they lie, or run by run.
func TestEntries(t *testing.T) {
	b := archive(
		t,
		map[string]string{
			"stored":  file("<i2", "3,", "\x01\x00\x02\x00\xff\xff"),
			"packedz": file("<i2", "2,", "\x05\x00\x06\x00"),
			"big":     file(">i2", "2,", "\x00\x05\x00\x06"),
			"lying":   file("<i2", "3,", "12"),
		},
	)
	z, err := npy.NewArchive(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	names := z.Names()
	slices.Sort(names)
	if !slices.Equal(names, []string{"big", "lying", "packedz", "stored"}) {
		t.Errorf("names %v", names)
	}
	for name, want := range map[string][]int64{"stored": {1, 2, -1}, "packedz": {5, 6}, "big": {5, 6}} {
		e, err := z.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		if err := e.Ints(func(_ int, v int64) error { got = append(got, v); return nil }); err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
		if at, err := e.Offset(); err != nil || name == "stored" != (at > 0 && b[at] == 1 && b[at+2] == 2) {
			t.Errorf("%s lies at %d, %v", name, at, err)
		}
	}
	if e, err := z.Find("lying"); err != nil || e.Fits() == nil {
		t.Errorf("an array of 2 bytes for 3 elements fits: %v", err)
	}
	if _, err := z.Find("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, err := npy.ReadFile(write("a.npy", []byte(file("|u1", "2, 1", "\x00\xc8"))))
	if err != nil || a.Columns() != 1 || !slices.Equal(a.Int, []int32{0, 200}) {
		t.Errorf("%+v, %v", a, err)
	}
	for what, b := range map[string]string{"large": file("<i8", "1,", "\x00\x00\x00\x00\x00\x01\x00\x00"),
		"text": file("<U1", "1,", "a\x00\x00\x00")} {
		if a, err := npy.ReadFile(write("b.npy", []byte(b))); err == nil {
			t.Errorf("%s: %+v, want an error", what, a)
		}
	}
	path := write("c.npz",
		archive(t, map[string]string{"x": file("<f4", "1,", "\x00\x00\x80\x3f"), "y": file("|u1", "1,", "\x07")}))
	all, err := npy.ReadArchive(path)
	if err != nil || len(all) != 2 || all["x"].F32[0] != 1 || all["y"].Int[0] != 7 {
		t.Errorf("%+v, %v", all, err)
	}
	if one, err := npy.ReadArchive(path, "y", "none"); err != nil || len(one) != 1 || one["y"].Int[0] != 7 {
		t.Errorf("%+v, %v", one, err)
	}
}

// TestWriter: what is written is read.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := npy.NewWriter(&out)
	if err := errors.Join(
		w.WriteArray("x", "<f4", []byte("\x00\x00\x80\x3f\x00\x00\x00\x40"), 1, 2),
		w.Text("s", []string{"é", "", "abc"}),
		w.Close(),
	); err != nil {
		t.Fatal(err)
	}
	z, err := npy.NewArchive(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) *npy.Array {
		e, err := z.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := e.Read()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if x := read("x"); !slices.Equal(x.Float32s(), []float32{1, 2}) || !slices.Equal(x.Shape, []int{1, 2}) {
		t.Errorf("%s: %v", x, x.Float32s())
	}
	if s := read("s"); s.Text(0)+"|"+s.Text(1)+"|"+s.Text(2) != "é||abc" {
		t.Errorf("%s", s)
	}
}

// FuzzArchive: whatever a file holds, its arrays are read or refused, and no larger than deflate can make them.
func FuzzArchive(f *testing.F) {
	f.Add(archive(f, map[string]string{"x": file("<f4", "2, 1", "12345678"), "yz": file("|S2", "2,", "abcd")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		z, err := npy.NewArchive(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, name := range z.Names() {
			e, err := z.Find(name)
			if err != nil {
				continue
			}
			if a, err := e.Read(); err == nil && (a.Len() != e.Count || a.Len()*a.Size > 1032*len(b)) {
				t.Errorf("%s of %d bytes in a file of %d", a, a.Len()*a.Size, len(b))
			}
		}
	})
}
