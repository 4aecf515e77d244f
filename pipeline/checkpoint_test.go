package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// blob is a state that is its bytes.
type blob struct{ b []byte }

func (s *blob) AppendState(dst []byte) ([]byte, error) { return append(dst, s.b...), nil }

func (s *blob) RestoreState(src []byte) error {
	if bytes.Equal(src, []byte("refuse")) {
		return errors.New("refused")
	}
	s.b = bytes.Clone(src)
	return nil
}

func sections(vs ...string) []Section {
	var out []Section
	for i, v := range vs {
		out = append(out, Section{Name: fmt.Sprintf("s%d", i), Version: 1, State: &blob{[]byte(v)}})
	}
	return out
}

func encoded(t testing.TB, ss []Section) []byte {
	t.Helper()
	c, err := EncodeCheckpoint(ss)
	if err != nil {
		t.Fatal(err)
	}
	return c.Data
}

func TestCheckpointRoundTrip(t *testing.T) {
	for _, vs := range [][]string{{}, {""}, {"a", "", strings.Repeat("x", 5000)}} {
		data := encoded(t, sections(vs...))
		got := sections(make([]string, len(vs))...)
		if err := RestoreCheckpoint(data, got, nil); err != nil {
			t.Fatal(err)
		}
		if again := encoded(t, got); !bytes.Equal(again, data) {
			t.Errorf("%d sections: another encoding after restoring", len(vs))
		}
	}
	if err := RestoreCheckpoint(encoded(t, sections("a", "refuse")), sections("", ""), nil); err == nil ||
		!strings.Contains(err.Error(), "s1") {
		t.Errorf("refused section: %v, want an error that names it", err)
	}
}

// TestSectionsOfOtherConfigurations: what a checkpoint has no section for begins afresh, and hears so.
func TestSectionsOfOtherConfigurations(t *testing.T) {
	got, fresh := sections("", "as made"), 0
	got[0].Fresh, got[1].Fresh = func() { t.Error("s0 is in the checkpoint") }, func() { fresh++ }
	if err := RestoreCheckpoint(encoded(t, sections("a")), got, nil); err != nil || fresh != 1 {
		t.Errorf("%v, heard %d times that it begins afresh, want once", err, fresh)
	}
	for i, want := range []string{"a", "as made"} {
		if b := got[i].State.(*blob).b; string(b) != want {
			t.Errorf("section %d is %q, want %q", i, b, want)
		}
	}
}

// TestUnknownVersionIsRefused: the error names the section, its version and the one that is read.
func TestUnknownVersionIsRefused(t *testing.T) {
	written := sections("a", "b")
	written[1].Version = 7
	err := RestoreCheckpoint(encoded(t, written), sections("", ""), nil)
	if err == nil || !strings.Contains(err.Error(), "section s1 has version 7, this build reads version 1") {
		t.Errorf("got %v", err)
	}
}

// TestOldestVersion: a section of an older version is read down to the oldest, and none of a later one.
func TestOldestVersion(t *testing.T) {
	for version, want := range map[byte]bool{1: false, 2: true, 3: true, 4: true, 5: false} {
		written, read := sections("a"), sections("")
		written[0].Version, read[0].Version, read[0].Oldest = version, 4, 2
		data := encoded(t, written)
		var format *FormatError
		for _, err := range []error{RestoreCheckpoint(data, read, nil), CheckFormat(data, read)} {
			if (err == nil) != want || !want && (!errors.As(err, &format) || format.Has != version) {
				t.Errorf("version %d: %v", version, err)
			}
		}
		if got := string(read[0].State.(*blob).b); (got == "a") != want {
			t.Errorf("version %d: the state is %q", version, got)
		}
	}
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	data := encoded(t, sections("first", "", "third section of some length"))
	for i := range data {
		for _, flip := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(data)
			bad[i] ^= flip
			if _, err := parseCheckpoint(bad); !errors.Is(err, ErrCheckpoint) {
				t.Fatalf("byte %d ^ %#x: error %v, want ErrCheckpoint", i, flip, err)
			}
		}
		if _, err := parseCheckpoint(data[:i]); !errors.Is(err, ErrCheckpoint) {
			t.Fatalf("cut to %d bytes: error %v, want ErrCheckpoint", i, err)
		}
	}
	if _, err := parseCheckpoint(append(bytes.Clone(data), 0)); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("a byte too many: error %v", err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(encoded(f, sections("a", "bc")))
	f.Add(encoded(f, nil))
	f.Add([]byte("PLBC\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseCheckpoint(data)
		if err != nil && !errors.Is(err, ErrCheckpoint) {
			t.Fatalf("error %v is not ErrCheckpoint", err)
		}
		n := 0
		if err == nil {
			for _, s := range got.sections {
				n += len(s.body)
			}
		}
		if n > len(data) {
			t.Fatalf("%d bytes of sections from %d", n, len(data))
		}
	})
}
