package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// Names in the archive.
const (
	manifestName = "manifest.json"
	statePrefix  = "state/"
	historyName  = "history.db"
)

// Place is where a deployment keeps what is copied.
type Place struct {
	Group   string
	State   string // checkpoints.dir
	Skip    string // the work directory, of no use to another process; "" = none
	History string // file of the history's database; "" = none
}

// Manifest says what a copy holds.
type Manifest struct {
	Format  int       `json:"format"` // 1
	Group   string    `json:"group"`
	Program string    `json:"program"` // that made the copy
	At      time.Time `json:"at"`
	Files   []File    `json:"files"`
}

// File is one file of a copy.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const format = 1

// errMoved is returned where a process writes during the copy.
var errMoved = errors.New("changed during the copy: stop all processes, or pause them with --wait")

// Create writes a copy of p to out. program is recorded in it.
func Create(out io.Writer, p Place, program string) (*Manifest, error) {
	before, err := list(p)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return nil, fmt.Errorf("%s: no checkpoint is there: nothing to copy", p.State)
	}
	m := &Manifest{Format: format, Group: p.Group, Program: program, At: time.Now().UTC().Truncate(time.Second)}
	sources := map[string]string{}
	for _, f := range before {
		name := statePrefix + filepath.ToSlash(f.name)
		if err := m.add(name, filepath.Join(p.State, f.name)); err != nil {
			return nil, moved(err)
		}
		sources[name] = filepath.Join(p.State, f.name)
	}
	if history, err := copyHistory(p.History); err != nil {
		return nil, err
	} else if history != "" {
		defer os.Remove(history)
		if err := m.add(historyName, history); err != nil {
			return nil, err
		}
		sources[historyName] = history
	}
	if err := m.write(out, sources); err != nil {
		return nil, moved(err)
	}
	after, err := list(p)
	if err != nil {
		return nil, moved(err)
	}
	if !slices.Equal(before, after) {
		return nil, fmt.Errorf("%s: %w", p.State, errMoved)
	}
	return m, nil
}

// moved is err, or errMoved where a file went away meanwhile.
func moved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", err, errMoved)
	}
	return err
}

// seen is a file as it was.
type seen struct {
	name string
	size int64
	at   int64
}

// list returns the files of the state in the order of their names.
func list(p Place) ([]seen, error) {
	var out []seen
	err := filepath.WalkDir(p.State, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p.Skip != "" && filepath.Clean(path) == filepath.Clean(p.Skip) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || filepath.Clean(path) == filepath.Clean(p.History) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(p.State, path)
		out = append(out, seen{name, info.Size(), info.ModTime().UnixNano()})
		return err
	})
	slices.SortFunc(out, func(a, b seen) int { return strings.Compare(a.name, b.name) })
	return out, err
}

func (m *Manifest) add(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	m.Files = append(m.Files, File{name, n, hex.EncodeToString(sum.Sum(nil))})
	return err
}

// write writes the archive: the manifest, and the files from their sources.
func (m *Manifest) write(out io.Writer, sources map[string]string) error {
	zip := gzip.NewWriter(out)
	archive := tar.NewWriter(zip)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	const private = 0o600
	head := tar.Header{Name: manifestName, Size: int64(len(text)), Mode: private, ModTime: m.At}
	if err := archive.WriteHeader(&head); err != nil {
		return err
	}
	if _, err := archive.Write(text); err != nil {
		return err
	}
	for _, f := range m.Files {
		head := tar.Header{Name: f.Name, Size: f.Size, Mode: private, ModTime: m.At}
		if err := archive.WriteHeader(&head); err != nil {
			return err
		}
		if err := copyFile(archive, sources[f.Name], f.Size); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// copyFile writes size bytes of a file; one that has fewer was changed.
func copyFile(to io.Writer, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if n, err := io.CopyN(to, f, size); err != nil {
		return fmt.Errorf("%s: %d of %d bytes: %w", path, n, size, errMoved)
	}
	return nil
}

// copyHistory makes a copy of the database that no process is writing to at the moment, "" where there is none.
func copyHistory(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	const patience = 10 * time.Second
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: patience, ReadOnly: true})
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer db.Close()
	to, err := os.CreateTemp("", "plumbline-history-*.db")
	if err != nil {
		return "", err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(to)
		return err
	})
	if err = errors.Join(err, to.Close()); err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	return to.Name(), nil
}
