package dataset

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/table"
)

// TestTrainSourceRepeats: rows with the id and times of one before are repeats, rows without ids never.
func TestTrainSourceRepeats(t *testing.T) {
	a, b := arrowio.HashID("a"), arrowio.HashID("b")
	s := order{times: []int64{1, 1, 1, 2, 1, 1}}
	for _, id := range []arrowio.ID{a, b, a, a, {}, {}} {
		s.keys = append(s.keys, rowKey(id))
	}
	if got := s.repeats(6); !slices.Equal(got, []bool{false, false, true, false, false, false}) {
		t.Errorf("got %v", got)
	}
}

// TestSpool: what is written comes back, from memory and from the file that takes over.
func TestSpool(t *testing.T) {
	for _, memory := range []int64{0, 100, 1 << 20} {
		s := &spool{memory: memory}
		var want []float32
		for i := range 300 {
			want = append(want, float32(i), -float32(i)/3)
			if err := s.floats(want[2*i:]); err != nil {
				t.Fatal(err)
			}
		}
		raw := make([]byte, 8)
		for i := range 300 {
			if _, err := s.ReadAt(raw, int64(8*i)); err != nil ||
				math.Float32frombits(binary.LittleEndian.Uint32(raw)) != want[2*i] ||
				math.Float32frombits(binary.LittleEndian.Uint32(raw[4:])) != want[2*i+1] {
				t.Fatalf("memory %d: number %d is %v, %v", memory, i, raw, err)
			}
		}
		if _, err := s.ReadAt(raw, s.size-4); err == nil {
			t.Error("no error at the end")
		}
		if inFile := s.file != nil; inFile != (memory < s.size) {
			t.Errorf("memory %d: in a file: %v", memory, inFile)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpoolMemory: what is copied into memory afterwards is not held twice, but where there is no place for a file.
func TestSpoolMemory(t *testing.T) {
	for name, dir := range map[string]string{"file": t.TempDir(), "none": filepath.Join(t.TempDir(), "none")} {
		t.Setenv("TMPDIR", dir)
		s := &spool{memory: 1 << 30}
		run := make([]float32, 1<<20)
		run[5] = 7
		for range 6 {
			if err := s.floats(run); err != nil {
				t.Fatal(err)
			}
		}
		if held := len(s.buf) > spoolBuffer; held != (name == "none") || (s.file == nil) != (name == "none") ||
			s.size != 24<<20 {
			t.Errorf("%s: %d bytes of %d in memory, in a file: %v", name, len(s.buf), s.size, s.file != nil)
		}
		var raw [4]byte
		if _, err := s.ReadAt(raw[:], 20<<20+20); err != nil ||
			math.Float32frombits(binary.LittleEndian.Uint32(raw[:])) != 7 {
			t.Errorf("%s: got %v, %v", name, raw, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	s := &spool{memory: 1 << 10, bound: "--memory"}
	if err := s.floats(make([]float32, 1<<10)); err == nil || !strings.Contains(err.Error(), "(TMPDIR)") {
		t.Errorf("got %v, want that there is no room", err)
	}
}

// TestTrainSourceEarlyNulls: rows without features may come before it is known how many features a row has.
func TestTrainSourceEarlyNulls(t *testing.T) {
	var used Rows
	s, values := NewSource(1<<20, &used), &spool{memory: 1 << 20}
	for _, p := range []*table.FeaturePart{
		{N: 2, Offset: -1, Width: 4, Label: []int32{0, 1}, Null: []int32{0, 1}},
		{N: 1, Offset: -1, Width: 4, Label: []int32{0}, Null: []int32{0}},
		{N: 2, D: 2, Offset: -1, Width: 4, Label: []int32{1, 0}, Values: []float32{1, 2, 3, 4}},
		{N: 1, Offset: -1, Width: 4, Label: []int32{1}, Null: []int32{0}},
		{N: 1, D: 2, Offset: -1, Width: 4, Label: []int32{1}, Values: []float32{5, 6}},
	} {
		if err := s.part("a.parquet", nil, values, p); err != nil {
			t.Fatal(err)
		}
	}
	set, err := s.set("a.parquet", 0)
	if err != nil {
		t.Fatal(err)
	}
	got := set.Chunk(nil, 0, set.N())
	if !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(set.Y, []int32{1, 0, 1}) ||
		used.NoFeatures != 4 || used.NotFinite != 0 {
		t.Errorf("got %v of %v, %d without features", got, set.Y, used.NoFeatures)
	}
	none := NewSource(1<<20, &used)
	if err := none.part("a.parquet", nil, values, &table.FeaturePart{N: 2, Offset: -1, Label: []int32{0, 1},
		Null: []int32{0, 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := none.set("a.parquet", 0); err == nil ||
		!strings.Contains(err.Error(), "a.parquet: none of the 2 rows has features: column features is null in all") {
		t.Errorf("got %v", err)
	}
}

// TestSystemErrors: what the system refuses is an error, not rows that are silently missing.
func TestSystemErrors(t *testing.T) {
	s := NewSource(0, &Rows{})
	for _, no := range []error{syscall.EMFILE, syscall.EIO, syscall.EACCES} {
		if err := s.try("a.arrow", false, func() error {
			return &os.PathError{Op: "open", Path: "a.arrow",
				Err: no}
		}); !errors.Is(err, no) {
			t.Errorf("%v: got %v", no, err)
		}
	}
	if err := s.try("a.arrow", false, func() error {
		return &os.PathError{Op: "open", Path: "a.arrow",
			Err: syscall.ENOENT}
	}); err != nil || s.Used.Vanished != 1 {
		t.Errorf("gone: got %v, %d gone", err, s.Used.Vanished)
	}
}
