package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// zeroArray is an npz file whose only array has n×10 zeros of float64: about a thousandth of them in bytes.
func zeroArray(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zeros.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for _, array := range []struct {
		name, descr, shape string
		bytes              int
	}{{"logits", "<f8", fmt.Sprintf("(%d, 10)", n), 80 * n}, {"labels", "<i8", fmt.Sprintf("(%d,)", n), 8 * n}} {
		w, err := z.Create(array.name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", array.descr, array.shape)
		b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
		binary.LittleEndian.PutUint16(b[8:], uint16(len(header)))
		_, err = w.Write(append(b, header...))
		zeros := make([]byte, 1<<20)
		for left := array.bytes; left > 0 && err == nil; left -= len(zeros) {
			_, err = w.Write(zeros[:min(left, len(zeros))])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMaxMemory: a small file that asks for much memory is refused where it asks for more than it may have.
func TestMaxMemory(t *testing.T) {
	file := zeroArray(t, 2<<20)
	if st, err := os.Stat(file); err != nil || st.Size() > 1<<20 {
		t.Fatalf("%v, %v", st, err)
	}
	for _, args := range [][]string{{"eval"}, {"fit", "-o", filepath.Join(t.TempDir(), "c.json")}} {
		args = append(args, file+":logits", "--labels", "labels", "--max-memory", "64MiB")
		code, _, errs := runCommand(t, args...)
		if code != exitFailed || !strings.Contains(errs, "more memory is needed than 64 MiB (--max-memory)") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	for _, bad := range []string{"-1", "much"} {
		if code, _, errs := runCommand(t, "eval", file, "--max-memory", bad); code != exitUsage {
			t.Errorf("--max-memory %s: %d %s", bad, code, errs)
		}
	}
}

// TestSignalsAreObeyedWhileReading: a command that waits for a file ends when it is told to.
func TestSignalsAreObeyedWhileReading(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "rows.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{"eval", pipe}, {"convert", pipe, "-o", filepath.Join(t.TempDir(), "x.onnx")},
		{"test", "rules", pipe}} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var out, errs bytes.Buffer
		if code := execute(ctx, args, &out, &errs); code != exitFailed ||
			!strings.Contains(errs.String(), "canceled") {
			t.Errorf("%v: %d %s", args, code, errs.String())
		}
	}
	// Who waits for a writer is let go.
	for range 3 {
		if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = w.Close()
		}
	}
}
