package workdir

import (
	"os"
	"testing"
)

// TestDirectoriesOfTheDeadGo: a directory whose process has gone is removed by the next of the same prefix, one that is
// in use and those of others are not.
func TestDirectoriesOfTheDeadGo(t *testing.T) {
	base := t.TempDir()
	open := func(prefix string) *Dir {
		d, err := New(base, prefix)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	dead, alive, other := open("a"), open("a"), open("b")
	if err := dead.lock.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	last := open("a")
	if _, err := os.Stat(dead.Path()); !os.IsNotExist(err) {
		t.Errorf("the dead one's directory: %v, want none", err)
	}
	for _, d := range []*Dir{alive, other, last} {
		if _, err := os.Stat(d.Path()); err != nil {
			t.Error(err)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.Path()); !os.IsNotExist(err) {
			t.Errorf("after Remove: %v, want none", err)
		}
	}
}
