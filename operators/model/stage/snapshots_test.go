package stage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
)

// snapshotsOf has n windows, the first one open.
func snapshotsOf(n int) (s Snapshots, want map[string][]byte) {
	s, want = Snapshots{}, map[string][]byte{}
	var open openSnapshots
	for i := range n {
		window, text := fmt.Sprintf("%dm", i), fmt.Appendf(nil, `{"window":"%dm","ece":0.0%d1,"nll":.%d5}`, i, i, i)
		want[window] = text
		if open.put(s, window, text); i > 0 {
			s.pack(window)
		}
	}
	return s, want
}

// TestSnapshotsOfCheckpoints: what a process has packed can be read by it and by another one.
func TestSnapshotsOfCheckpoints(t *testing.T) {
	s, want := snapshotsOf(4)
	ours := s.Append(AppendDictionary(nil))
	other := new(dictionary)
	foreign := binenc.AppendBytes(nil, other.of([]byte("another process had another first snapshot")).like)
	foreign = binenc.AppendUvarint(foreign, uint64(len(want)))
	for window, text := range want {
		foreign = append(binenc.AppendString(foreign, window), packedForm)
		foreign = binenc.AppendBytes(foreign, other.encode(text, nil))
	}
	for name, b := range map[string][]byte{"of this process": ours, "of another": foreign,
		"texts": s.AppendTexts(binenc.AppendBytes(nil, nil))} {
		r := binenc.NewReader(b)
		got := ReadDictionary(&r).Read(&r)
		got.Pack()
		if err := r.Close(); err != nil || !maps.EqualFunc(got.All(), want, bytes.Equal) {
			t.Errorf("%s: got %s (%v), want %s", name, got.All(), err, want)
		}
	}
	r := binenc.NewReader(s.Append(binenc.AppendBytes(nil, nil)))
	if ReadDictionary(&r).Read(&r); !errors.Is(r.Close(), binenc.ErrCorrupt) {
		t.Errorf("packed without a dictionary: %v", r.Close())
	}
}

// FuzzSnapshotReader: bytes of a checkpoint stop nothing.
func FuzzSnapshotReader(f *testing.F) {
	s, _ := snapshotsOf(3)
	f.Add(s.Append(AppendDictionary(nil)))
	f.Add(s.AppendTexts(binenc.AppendBytes(nil, nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := binenc.NewReader(b)
		got := ReadDictionary(&r).Read(&r)
		if got.Pack(); r.Close() == nil {
			got.All()
		}
	})
}
