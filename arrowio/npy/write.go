package npy

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Writer writes an .npz file as numpy.savez does: uncompressed.
type Writer struct{ z *zip.Writer }

// NewWriter begins a file.
func NewWriter(w io.Writer) *Writer { return &Writer{zip.NewWriter(w)} }

// Close writes the directory.
func (z *Writer) Close() error { return z.z.Close() }

// WriteArray writes an array in the .npy format, version 1, with its elements at a multiple of 64 bytes from its start.
func (z *Writer) WriteArray(name, descr string, data []byte, shape ...int) error {
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	if len(shape) == 1 {
		dims += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	const prefix, align = 10, 64
	header += strings.Repeat(" ", (align-(prefix+len(header)+1)%align)%align) + "\n"
	w, err := z.z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(
		w,
		"\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), byte(len(header) >> 8)})+header,
	); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// Text writes strings as UTF-32 of the longest one's width, NumPy's str.
func (z *Writer) Text(name string, v []string) error {
	width := 1
	for _, s := range v {
		width = max(width, utf8.RuneCountInString(s))
	}
	const most = 1 << 28
	if len(v)*width > most {
		return fmt.Errorf(
			"array %s: %d strings of up to %d characters, which NumPy pads to one width: write another format", name,
			len(v), width)
	}
	data := make([]byte, 4*len(v)*width)
	for i, s := range v {
		j := i * width
		for _, r := range s {
			binary.LittleEndian.PutUint32(data[4*j:], uint32(r))
			j++
		}
	}
	return z.WriteArray(name, fmt.Sprintf("<U%d", width), data, len(v))
}
