package engine

import (
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/pipeline"
)

// diskSpace is what a file system has, in bytes.
type diskSpace struct{ free, size uint64 } // free: for this user

// diskDirs returns the directories that this process writes to, by what they hold.
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

// spaceUnder returns the space of a directory's file system or, if the directory does not exist yet, of that of the
// nearest existing parent. ok is false if the system does not tell.
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
