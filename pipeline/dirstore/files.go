package dirstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/pipeline"
)

// filesDir holds the files that the checkpoints of a key refer to, each under the hash of its bytes.
const filesDir = "files"

// dirFiles remembers which files this process has put into the directory of a key, and which files a checkpoint refers
// to. Unknown files are put again; unknown references are read from the checkpoint.
type dirFiles struct {
	mu   sync.Mutex
	have map[string]map[string]bool // true: the latest checkpoint there is this process's and refers to it
	refs map[string][]pipeline.File
}

// put makes the files of a checkpoint durable in dir. A file of the same name is replaced, unless this process has put
// it there: it may be damaged. One that no checkpoint refers to yet is made to look new, or others may sweep it.
func (d *dirFiles) put(dir string, files []pipeline.File) error {
	d.mu.Lock()
	have := maps.Clone(d.have[dir])
	d.mu.Unlock()
	if len(files) == 0 && have == nil {
		return nil
	}
	to := filepath.Join(dir, filesDir)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	now := map[string]bool{}
	for _, f := range files {
		referred, put := have[f.Name]
		if !referred && (!put || touch(filepath.Join(to, f.Name)) != nil) {
			if err := putFile(to, f); err != nil {
				return fmt.Errorf("keep file %s: %w", f.Name, err)
			}
		}
		now[f.Name] = referred
	}
	if err := errors.Join(durable.SyncDir(to), durable.SyncDir(dir)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.have == nil {
		d.have = map[string]map[string]bool{}
	}
	d.have[dir] = now
	return nil
}

// putFile links a file, or copies it where it is on another file system, under a temporary name first.
func putFile(to string, f pipeline.File) error {
	tmp, err := os.CreateTemp(to, f.Name+"-*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	link := tmp.Name() + "-link" + tempSuffix
	if os.Link(f.Path, link) == nil {
		defer func() { _ = os.Remove(link) }() // renaming one link to another of the same file does nothing
		_ = touch(link)                        // what another user owns stays as old as it is
		if err := errors.Join(tmp.Close(), syncFile(link)); err != nil {
			return err
		}
		return os.Rename(link, filepath.Join(to, f.Name))
	}
	if err := copyFile(tmp, f.Path); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(to, f.Name))
}

// touch makes a file as young as one that is written now.
func touch(name string) error {
	now := time.Now()
	return os.Chtimes(name, now, now)
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyFile fills, syncs and closes dst.
func copyFile(dst *os.File, from string) error {
	src, err := os.Open(from)
	if err == nil {
		_, err = io.Copy(dst, src)
		err = errors.Join(err, src.Close(), dst.Sync())
	}
	return errors.Join(err, dst.Close())
}

// fetchFile brings a kept file to a path. What is there is replaced, not written to: it may be a link to the kept file.
func fetchFile(dir, name, path string) error {
	from := filepath.Join(dir, filesDir, name)
	if err := os.Link(from, path); err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), name+"-*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if err := copyFile(tmp, from); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// noted remembers the files of a checkpoint that this process has written.
func (d *dirFiles) noted(checkpoint string, files []pipeline.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark(filepath.Dir(checkpoint), true)
	if d.refs == nil {
		d.refs = map[string][]pipeline.File{}
	}
	d.refs[checkpoint] = files
}

// loaded notes that the task of a directory begins again: meanwhile others may have removed what it had put.
func (d *dirFiles) loaded(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark(dir, false)
}

func (d *dirFiles) mark(dir string, referred bool) {
	have := d.have[dir]
	for f := range have {
		have[f] = referred
	}
}

// of returns the files of a checkpoint.
func (d *dirFiles) of(checkpoint string) ([]pipeline.File, error) {
	d.mu.Lock()
	files, ok := d.refs[checkpoint]
	d.mu.Unlock()
	if ok {
		return files, nil
	}
	data, err := os.ReadFile(checkpoint)
	if err != nil {
		return nil, err
	}
	return pipeline.Files(data)
}

// prune removes old checkpoints, and then the files that only they refer to. A file that no checkpoint refers to stays:
// the process that has taken over may just have put it there. What cannot be removed is harmless: an error must not
// fail a checkpoint that is already durable.
func (d *dirFiles) prune(dir string, kept, old []uint64) {
	if len(old) == 0 {
		return
	}
	needed, complete := d.needed(dir, kept)
	loose := map[string]bool{}
	for _, n := range old {
		name := filepath.Join(dir, checkpointName(n))
		files, _ := d.of(name)
		for _, f := range files {
			loose[f.Name] = complete
		}
		_ = os.Remove(name)
		_ = os.Remove(filepath.Join(dir, journalName(n)))
		d.mu.Lock()
		delete(d.refs, name)
		d.mu.Unlock()
	}
	for f, remove := range loose {
		if remove && !needed[f] {
			_ = os.Remove(filepath.Join(dir, filesDir, f))
		}
	}
}

// needed are the files of some checkpoints; not complete where one of them cannot be read.
func (d *dirFiles) needed(dir string, numbers []uint64) (names map[string]bool, complete bool) {
	names = map[string]bool{}
	for _, n := range numbers {
		files, err := d.of(filepath.Join(dir, checkpointName(n)))
		if err != nil {
			return names, false
		}
		for _, f := range files {
			names[f.Name] = true
		}
	}
	return names, true
}

// sweep removes the files that no checkpoint of dir refers to. They stay behind when a process ends between writing
// them and its checkpoint. Files that a running process has put for its next one are too young.
func (d *dirFiles) sweep(dir string, numbers []uint64) {
	to := filepath.Join(dir, filesDir)
	es, err := os.ReadDir(to)
	if err != nil {
		return
	}
	needed, complete := d.needed(dir, numbers)
	if !complete {
		return
	}
	for _, e := range es {
		if info, err := e.Info(); err == nil && !needed[e.Name()] && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(filepath.Join(to, e.Name()))
		}
	}
}
