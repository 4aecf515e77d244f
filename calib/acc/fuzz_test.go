package acc

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
)

// fuzzDecoder checks that a decoder takes any bytes: an accepted blob encodes to itself (encodings are canonical) and
// merges; a rejected one gives ErrCorrupt and leaves the receiver as it was.
func fuzzDecoder[T accumulator[T]](f *testing.F, mk func() T, row func(*rand.Rand) func(T) error) {
	rng := rand.New(rand.NewPCG(1, 1))
	full := mk()
	for range 40 {
		if err := row(rng)(full); err != nil {
			f.Fatal(err)
		}
	}
	good := encode(f, full)
	f.Add(good)
	f.Add(encode(f, mk()))
	f.Add(good[:len(good)/2])
	f.Add(append(bytes.Clone(good), 0))
	f.Add([]byte{})
	for range 20 {
		bad := bytes.Clone(good)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := full.Clone()
		if err := a.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got error %v, want ErrCorrupt", err)
			}
			if !bytes.Equal(encode(t, a), good) {
				t.Fatal("a rejected blob changed the receiver")
			}
			return
		}
		if got := encode(t, a); !bytes.Equal(got, b) {
			t.Fatalf("accepted %x, which encodes to %x", b, got)
		}
		if err := a.Merge(a.Clone()); err != nil && !errors.Is(err, ErrOverflow) {
			t.Fatal(err)
		}
		if a.Reset(); len(encode(t, a)) > len(b) {
			t.Fatal("an empty accumulator is longer than a full one")
		}
	})
}

func FuzzGrid(f *testing.F)      { fuzzDecoder(f, newGrid, gridRow) }
func FuzzSoftBins(f *testing.F)  { fuzzDecoder(f, newSoft, softRow) }
func FuzzClassWise(f *testing.F) { fuzzDecoder(f, newClass, classRow) }
func FuzzScores(f *testing.F)    { fuzzDecoder(f, newScores, scoresRow) }
func FuzzLag(f *testing.F)       { fuzzDecoder(f, newLag, lagRow) }
func FuzzSample(f *testing.F)    { fuzzDecoder(f, newSample, sampleRow) }
func FuzzSet(f *testing.F)       { fuzzDecoder(f, newSet, setRow) }

// TestDecodeMemory: a small blob that claims to be large is refused before anything large is allocated.
func TestDecodeMemory(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07} // 2^31 - 1
	blobs := map[string]struct {
		b      []byte
		decode func([]byte) error
	}{
		"grid":  {append([]byte{1}, huge...), new(Grid).UnmarshalBinary},
		"soft":  {append([]byte{1}, 0x90, 0x1c), new(SoftBins).UnmarshalBinary},
		"class": {append([]byte{1, 0x80, 0x80, 0x40, 15}, make([]byte, 100)...), new(ClassWise).UnmarshalBinary},
		"sample": {append(append(append([]byte{1, 1}, huge...), make([]byte, 8)...), huge...),
			new(Sample).UnmarshalBinary},
		"set": {[]byte{1, 0x80, 0x80, 0x40, 15, 15, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 1,
			0, 0}, new(Set).UnmarshalBinary},
	}
	for name, f := range blobs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := f.decode(f.b)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes allocated for a blob of %d", name, got, len(f.b))
		}
	}
}
