package disk

import (
	"path/filepath"
	"testing"
)

// TestUnder: a directory that is not there yet will be in the file system of its parent.
func TestUnder(t *testing.T) {
	dir := t.TempDir()
	is, ok := Under(dir)
	if !ok {
		t.Skip("this system does not tell what a file system has")
	}
	will, ok := Under(filepath.Join(dir, "not", "yet"))
	if !ok || will.Size != is.Size || is.Size == 0 || is.Free > is.Size {
		t.Errorf("%+v, and of what is not there %+v", is, will)
	}
}
