package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
)

// TestNamesOfOlderBuilds: files that are named by SHA-256, as of version 1 of the join's state, are read, keep their
// names in the next checkpoint, and are refused where a byte is wrong.
func TestNamesOfOlderBuilds(t *testing.T) {
	j := NewJoined(JoinedOptions{Dir: t.TempDir(), Prefix: "j", BlockRows: 4})
	s := New(Options{Dir: t.TempDir(), Prefix: "s", SegmentBytes: 100, MaxOpen: 2})
	defer func() { _, _ = j.Close(), s.Close() }()
	for i := range 8 {
		if err := j.Add(&ID{byte(i)}, int64(i), Key{"m", "1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(&Row{ID: ID{byte(i)}, Body: make([]byte, 30)}); err != nil {
			t.Fatal(err)
		}
	}
	nameOf := func(f File) []byte {
		name, err := hex.DecodeString(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	state := s.AppendState(j.AppendState(nil))
	names := map[string][]byte{}
	for _, f := range append(j.Files(), s.Files()...) {
		data, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		state = bytes.Replace(state, nameOf(f), sum[:], 1)
		names[hex.EncodeToString(sum[:])] = data
	}
	if len(names) < 4 {
		t.Fatalf("%d files", len(names))
	}
	restore := func(wrong string) (again []byte, err error) {
		j := NewJoined(JoinedOptions{Dir: t.TempDir(), Prefix: "j", BlockRows: 4})
		s := New(Options{Dir: t.TempDir(), Prefix: "s", SegmentBytes: 100, MaxOpen: 2})
		defer func() { _, _ = j.Close(), s.Close() }()
		fetch := func(name, path string) error {
			data := bytes.Clone(names[name])
			if name == wrong {
				data[len(data)-1] ^= 1
			}
			return os.WriteFile(path, data, 0o600)
		}
		r := binenc.NewReader(state)
		if err = j.Restore(&r, fetch); err == nil {
			err = s.Restore(&r, fetch, func(uint64, State, *Row) error { return nil })
		}
		if err == nil {
			again = s.AppendState(j.AppendState(nil))
		}
		return again, err
	}
	if again, err := restore(""); err != nil || !bytes.Equal(again, state) {
		t.Errorf("%v, a state of %d bytes, want the %d of before", err, len(again), len(state))
	}
	for name := range names {
		if _, err := restore(name); err == nil {
			t.Errorf("no error where file %s is damaged", name)
		}
	}
}
