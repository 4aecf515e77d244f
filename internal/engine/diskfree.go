package engine

import (
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/pipeline"
)

// diskSpace is what a file system has, in bytes.
type diskSpace struct{ free, size uint64 } // free: for this user

// diskDirs are the directories that this process writes to, by what they hold.
func (rt *Engine) diskDirs() map[string]string {
	out := map[string]string{}
	if rt.Config.Join.MemoryBytes > 0 {
		out["join"] = rt.workDir()
	}
	if rt.Config.Checkpoints.Store == pipeline.StoreDirectory {
		out["checkpoints"] = rt.Config.Checkpoints.Dir
	}
	return out
}

// spaceUnder is that of the file system of a directory, which need not be there yet: then of the first one above it
// that is. ok is false where the system does not tell.
func spaceUnder(dir string) (s diskSpace, ok bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return s, false
	}
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return fileSystem(dir)
		}
		dir = filepath.Dir(dir)
	}
}
