package binenc

import (
	"bytes"
	"errors"
	"testing"
)

// TestAppendBlock: the bytes are those of the block made apart, whatever the length of its length and wherever it goes.
func TestAppendBlock(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 16383, 16384, 1<<21 - 1, 1 << 21, 1<<21 + 1} {
		body := make([]byte, n)
		for i := range body {
			body[i] = byte(i*7 + i>>8)
		}
		for _, room := range []int{0, n + 2, n + 64} {
			b := append(make([]byte, 0, 5+room), "begin"...)
			want := AppendBytes([]byte("begin"), body)
			got, err := AppendBlock(b, func(dst []byte) ([]byte, error) { return append(dst, body...), nil })
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes with room for %d: got %d bytes, %v; want the %d of AppendBytes", n, room, len(got),
					err, len(want))
			}
		}
	}
	broken := errors.New("broken")
	b := []byte("begin")
	got, err := AppendBlock(b, func(dst []byte) ([]byte, error) { return append(dst, "half"...), broken })
	if !errors.Is(err, broken) || string(got) != "begin" {
		t.Errorf("got %q, %v; want what was there, and the error", got, err)
	}
}

// TestAppendBlockWithinBlocks: nested blocks are those made from the inside out.
func TestAppendBlockWithinBlocks(t *testing.T) {
	inner := bytes.Repeat([]byte("x"), 200)
	got, err := AppendBlock(nil, func(b []byte) ([]byte, error) {
		b, err := AppendBlock(append(b, 1), func(b []byte) ([]byte, error) { return append(b, inner...), nil })
		return append(b, 2), err
	})
	want := AppendBytes(nil, append(AppendBytes([]byte{1}, inner), 2))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
}
