package service

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// writeNPZ writes a set as numpy reads it: features, labels, and ts where rows have times. It is written through, a
// chunk of rows at a time; a file that is cut off is not complete, and is written anew before it is used.
func writeNPZ(file string, s *data.Set) (err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	z := zip.NewWriter(f)
	list, table := fmt.Sprintf("(%d,)", s.N()), fmt.Sprintf("(%d, %d)", s.N(), s.D)
	arrays := []array{
		{"features", "<f4", table, func(w io.Writer) error { return writeFeatures(w, s) }},
		{"labels", "<i4", list, numbers(s.Y)},
	}
	if s.Time != nil {
		arrays = append(arrays, array{"ts", "<i8", list, numbers(s.Time)})
	}
	for _, a := range arrays {
		if err := a.write(z); err != nil {
			return err
		}
	}
	return z.Close()
}

// array is one of an npz file; dtype and shape are as numpy writes them.
type array struct {
	name, dtype, shape string
	values             func(io.Writer) error
}

// write writes an array, format version 1.0, not compressed.
func (a array) write(z *zip.Writer) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	const lead, align = 10, 64
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", a.dtype, a.shape)
	text += strings.Repeat(" ", (align-(lead+len(text)+1)%align)%align) + "\n"
	b := bufio.NewWriter(w)
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text))) //nolint:gosec // below 200
	if _, err := b.Write(append(head, text...)); err != nil {
		return err
	}
	if err := a.values(b); err != nil {
		return err
	}
	return b.Flush()
}

// numbers writes numbers as they are.
func numbers[T int32 | int64](v []T) func(io.Writer) error {
	return func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, v) }
}

func writeFeatures(w io.Writer, s *data.Set) error {
	const rows = 1024 // at a time
	var scratch []float32
	var buf []byte
	for from := 0; from < s.N(); from += rows {
		n := min(rows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		buf = buf[:0]
		for _, v := range scratch {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func writeHead(file string, h *head.Head) error {
	var b bytes.Buffer
	if err := artefact.WriteSafetensors(&b, h, nil); err != nil {
		return err
	}
	return durable.WriteFile(file, b.Bytes())
}
