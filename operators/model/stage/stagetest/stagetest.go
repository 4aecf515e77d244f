package stagetest

import (
	"bytes"
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// FuzzState fuzzes a state's encoding, starting from seed: bytes that are accepted must be encoded and decoded to the
// same state.
func FuzzState(f *testing.F, seed stage.KeyState, fresh func() stage.KeyState) {
	b, err := seed.AppendState(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		s, r := fresh(), binenc.NewReader(data)
		if s.RestoreState(&r, nil) != nil || r.Close() != nil {
			return
		}
		again, err := s.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, r2 := fresh(), binenc.NewReader(again)
		if err := back.RestoreState(&r2, nil); err != nil {
			t.Fatalf("%v: its own encoding", err)
		}
		if third, err := back.AppendState(nil); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%x is read as %x, %v", again, third, err)
		}
	})
}
