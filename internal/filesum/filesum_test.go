package filesum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// TestNames: a name leads to the hash that made it, in whatever parts the bytes come, and not to one that names other
// bytes so.
func TestNames(t *testing.T) {
	file := bytes.Repeat([]byte("0123456789abcdef"), 100)
	fast, slow := Fast(file), sha256.Sum256(file)
	if got := Fast(file[:7], nil, file[7:]); got != fast {
		t.Errorf("in parts %x, want %x", got, fast)
	}
	for _, name := range [][]byte{fast[:], slow[:]} {
		h := Like(name)
		if h.Size() != Size {
			t.Errorf("a sum of %d bytes, want %d", h.Size(), Size)
		}
		for _, part := range [][]byte{file[:1], file[1:999], file[999:]} {
			_, _ = h.Write(part)
		}
		if got := h.Sum([]byte{1}); !bytes.Equal(got[1:], name) || got[0] != 1 {
			t.Errorf("%x, want %x behind a 1", got, name)
		}
		h.Reset()
		_, _ = h.Write(file[1:])
		if bytes.Equal(h.Sum(nil), name) {
			t.Errorf("other bytes are named %x too", name)
		}
	}
}

// TestNameStays: files of older builds must be found under their names. The hash of no bytes is that of the
// specification, XXH128 with seed 0.
func TestNameStays(t *testing.T) {
	const want = "585848332d3132380000000000000000" + "99aa06d3014798d86001c324468d497f"
	if name := Fast(); hex.EncodeToString(name[:]) != want {
		t.Errorf("%x, want %s", name, want)
	}
}
