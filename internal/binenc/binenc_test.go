package binenc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var b []byte
	uv := []uint64{0, 1, 127, 128, 1 << 32, math.MaxUint64}
	sv := []int64{0, -1, 1, math.MinInt64, math.MaxInt64}
	for _, v := range uv {
		b = AppendUvarint(b, v)
	}
	for _, v := range sv {
		b = AppendVarint(b, v)
	}
	b = AppendFixed32(b, 0xdeadbeef)
	b = AppendFixed64(b, 1<<63)
	b = AppendFloat64(b, math.Copysign(0, -1))
	b = AppendString(b, "plumb")
	b = AppendBytes(b, []byte{1, 2})
	r := NewReader(b)
	for _, want := range uv {
		if got := r.Uvarint(); got != want {
			t.Errorf("uvarint: got %d, want %d", got, want)
		}
	}
	for _, want := range sv {
		if got := r.Varint(); got != want {
			t.Errorf("varint: got %d, want %d", got, want)
		}
	}
	if got := r.Fixed32(); got != 0xdeadbeef {
		t.Errorf("fixed32: got %x", got)
	}
	if got := r.Fixed64(); got != 1<<63 {
		t.Errorf("fixed64: got %x", got)
	}
	if got := r.Float64(); got != 0 || !math.Signbit(got) {
		t.Errorf("float64: got %v, want -0", got)
	}
	if got := r.String(5); got != "plumb" {
		t.Errorf("string: got %q", got)
	}
	if got := r.Bytes(2); !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("bytes: got %v", got)
	}
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestRejects(t *testing.T) {
	f := func(name string, b []byte, read func(*Reader), want string) {
		t.Helper()
		r := NewReader(b)
		read(&r)
		err := r.Close()
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, want)
		}
	}
	f("truncated varint", []byte{0x80}, func(r *Reader) { r.Uvarint() }, "truncated")
	f("overlong varint", []byte{0x80, 0}, func(r *Reader) { r.Uvarint() }, "not minimal")
	f("65 bits", bytes.Repeat([]byte{0xff}, 10), func(r *Reader) { r.Uvarint() }, "64 bits")
	f("lying length", []byte{200, 1, 'x'}, func(r *Reader) { r.Bytes(1 << 30) }, "count 200, allowed up to 1")
	f("cap", []byte{3, 'a', 'b', 'c'}, func(r *Reader) { _ = r.String(2) }, "allowed up to 2")
	f("count", AppendUvarint(nil, math.MaxUint64), func(r *Reader) { r.Count(4, math.MaxInt) }, "allowed up to 0")
	f("range", []byte{9}, func(r *Reader) { r.Int("k", 1, 8) }, "k is 9, allowed 1 to 8")
	f("left over", []byte{1, 2}, func(r *Reader) { r.Byte() }, "1 bytes left over")
	f("version", []byte{2}, func(r *Reader) { r.Version(1) }, "version 2")
	f("sticky", []byte{0x80, 0, 5}, func(r *Reader) {
		r.Uvarint()
		if v := r.Byte(); v != 0 {
			t.Errorf("read after error: got %d, want 0", v)
		}
	}, "offset 0")
}

// FuzzReader checks that no input makes a reader panic, read past the end or return more than remains.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, []byte{5, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, ops, b []byte) {
		r := NewReader(b)
		for _, op := range ops {
			left := r.Len()
			switch op % 7 {
			case 0:
				r.Byte()
			case 1:
				r.Uvarint()
			case 2:
				r.Fixed32()
			case 3:
				r.Float64()
			case 4:
				if got := r.Bytes(1 << 20); len(got) > left {
					t.Fatalf("got %d bytes of %d", len(got), left)
				}
			case 5:
				if n := r.Count(3, 1<<40); 3*n > left {
					t.Fatalf("count %d of 3 bytes in %d", n, left)
				}
			case 6:
				r.Raw(int(op))
			}
			if r.Len() > left || r.Offset() > len(b) {
				t.Fatalf("offset %d of %d", r.Offset(), len(b))
			}
		}
	})
}

// TestUvarint8: eight bytes at once are read as binary.Uvarint reads them one by one, for every length, with anything
// behind; what is not minimal, or longer, is left to the slow path.
func TestUvarint8(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], rng.Uint64())
		enc := binary.AppendUvarint(nil, rng.Uint64()>>rng.IntN(64))
		if rng.IntN(4) > 0 {
			copy(b[:], enc)
		}
		want, n := binary.Uvarint(b[:])
		if n > 1 && b[n-1] == 0 {
			n = 0
		}
		if n <= 0 {
			want, n = 0, 0
		}
		if got, m := uvarint8(binary.LittleEndian.Uint64(b[:])); got != want || m != n {
			t.Fatalf("%x: got %d in %d bytes, want %d in %d", b, got, m, want, n)
		}
	}
}
