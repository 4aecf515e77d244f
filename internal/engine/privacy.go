package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/sinks/registry"
)

// minIDKey is how long the secret of privacy.id_key_file must be, in bytes: a short one can be guessed.
const minIDKey = 16

// idKey returns the function that maps ids for the archive: to themselves or, with a key, to a hash that only the
// holder of the key can compute. The file is read once.
func idKey(file string) (func(arrowio.ID) arrowio.ID, error) {
	if file == "" {
		return nil, nil
	}
	const name = "privacy.id_key_file"
	key, err := setting.FromFile(name, file)
	if err != nil {
		return nil, err
	}
	if len(key) < minIDKey {
		return nil, fmt.Errorf("%s: %s: the key has %d bytes, it must have %d or more", name, file, len(key), minIDKey)
	}
	return func(id arrowio.ID) (out arrowio.ID) {
		if id == out { // no id
			return out
		}
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(id[:])
		copy(out[:], mac.Sum(nil))
		return out
	}, nil
}

// warnOfReaders logs which places with rows and state others can read or write. New files are for their owner only;
// files of earlier versions, and directories made by hand, keep their modes.
func warnOfReaders(c *config.Config, log *slog.Logger) {
	places := map[string]string{"join.dir": c.Join.Dir, "archive.directory": c.Archive.Directory,
		"checkpoints.dir": c.Checkpoints.Dir}
	if c.History.Store == registry.File {
		places["history.path"] = c.History.Path
	}
	for key, place := range places {
		if n := openTo(place); n > 0 {
			log.Warn("files can be read or written by others than their owner: chmod -R go= closes them",
				"key", key, "place", place, "files", n)
		}
	}
}

// openTo counts the files and directories of a tree whose mode lets others in. Below a closed directory nothing does.
func openTo(place string) (n int) {
	if place == "" {
		return 0
	}
	_ = filepath.WalkDir(place, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		info, err := e.Info()
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			return nil
		}
		if info.Mode().Perm()&0o077 != 0 {
			n++
		} else if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return n
}
