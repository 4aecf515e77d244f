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

	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// writeNPZ writes a set as numpy reads it: features, labels, and ts where rows have times. It is written through, a
// chunk of rows at a time; a file that is cut off is not complete, and is written anew before it is used.
func writeNPZ(file string, s *data.Set) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	z := zip.NewWriter(f)
	if err := writeArray(z, "features", fmt.Sprintf("'<f4', 'fortran_order': False, 'shape': (%d, %d)", s.N(), s.D), func(w io.Writer) error { return writeFeatures(w, s) }); err != nil {
		return err
	}
	labels := func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, s.Y) }
	if err := writeArray(z, "labels", fmt.Sprintf("'<i4', 'fortran_order': False, 'shape': (%d,)", s.N()), labels); err != nil {
		return err
	}
	if s.Time != nil {
		times := func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, s.Time) }
		if err := writeArray(z, "ts", fmt.Sprintf("'<i8', 'fortran_order': False, 'shape': (%d,)", s.N()), times); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeArray writes an array, format version 1.0, not compressed.
func writeArray(z *zip.Writer, name, description string, values func(io.Writer) error) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	const lead, align = 10, 64
	text := "{'descr': " + description + ", }"
	text += strings.Repeat(" ", (align-(lead+len(text)+1)%align)%align) + "\n"
	b := bufio.NewWriter(w)
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text))) //nolint:gosec // below 200
	if _, err := b.Write(append(head, text...)); err != nil {
		return err
	}
	if err := values(b); err != nil {
		return err
	}
	return b.Flush()
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
	return writeFile(file, b.Bytes())
}
