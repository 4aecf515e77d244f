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
	"maps"
	"os"
	gopath "path"
	"path/filepath"
	"slices"
	"strings"
)

// Restore checks the copy in the file at path, then writes it to p, whose state must be empty and whose group that of
// the copy. readable returns an error where a checkpoint of a stage, shards or models, is of no use to this build; of
// each task it needs to read one.
func Restore(path string, p Place, readable func(stage string, data []byte) error) (*Manifest, error) {
	m, err := check(path, readable)
	if err != nil {
		return nil, err
	}
	if m.Group != p.Group {
		return nil, fmt.Errorf("%s: is of group %q, the configuration's is %q", path, m.Group, p.Group)
	}
	if there, err := list(p); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("%s: has %d files, and must be empty: move them away", p.State, len(there))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	const private = 0o700
	if err := os.MkdirAll(p.State, private); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(p.State)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readFile(path, func(f File, content io.Reader) error {
		name, ok := strings.CutPrefix(f.Name, statePrefix)
		if !ok {
			return putHistory(p.History, content)
		}
		if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(name)), private); err != nil {
			return err
		}
		to, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return save(to, content)
	})
}

// check reads a copy to its end, and a checkpoint of each task.
func check(path string, readable func(stage string, data []byte) error) (*Manifest, error) {
	useless := map[string]error{} // by task
	m, err := readFile(path, func(f File, content io.Reader) error {
		task, file := gopath.Split(f.Name)
		stage := gopath.Base(gopath.Dir(gopath.Clean(task)))
		err, seen := useless[task]
		if !strings.HasPrefix(file, "checkpoint-") || stage != "shards" && stage != "models" || seen && err == nil {
			return nil
		}
		data, err := io.ReadAll(content)
		if err == nil {
			useless[task] = readable(stage, data)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, task := range slices.Sorted(maps.Keys(useless)) {
		if err := useless[task]; err != nil {
			return nil, fmt.Errorf("%s: %s: %w. Restore it with the build that wrote it, %s", path, task, err,
				m.Program)
		}
	}
	return m, nil
}

// putHistory writes the history's database, unless there is one: it fills itself from its topic.
func putHistory(path string, content io.Reader) error {
	if path == "" {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	if err != nil {
		return err
	}
	return save(to, content)
}

func save(to *os.File, content io.Reader) error {
	_, err := io.Copy(to, content)
	return errors.Join(err, to.Sync(), to.Close())
}

func readFile(path string, each func(File, io.Reader) error) (*Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := walk(f, each)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// walk reads a copy, and gives each file to each. It fails unless every file of the manifest is there, in its order,
// with its size and sum, and nothing else.
func walk(in io.Reader, each func(File, io.Reader) error) (*Manifest, error) {
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("not a copy of plumbline: %w", err)
	}
	archive := tar.NewReader(zip)
	m, err := readManifest(archive)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		head, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("cut before %s: %w", f.Name, err)
		}
		if head.Name != f.Name || head.Size != f.Size || head.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("has %s of %d bytes in the place of %s of %d", head.Name, head.Size, f.Name, f.Size)
		}
		sum := sha256.New()
		content := io.TeeReader(archive, sum)
		if err := each(f, content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
			return nil, fmt.Errorf("%s is damaged: its sum is %.12s, not %.12s", f.Name, got, f.SHA256)
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than its manifest says")
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // its own sum comes last
		return nil, fmt.Errorf("cut or damaged at its end: %w", err)
	}
	return m, nil
}

func readManifest(archive *tar.Reader) (*Manifest, error) {
	const most = 64 << 20
	head, err := archive.Next()
	if err != nil || head.Name != manifestName || head.Size > most {
		return nil, errors.New("not a copy of plumbline: it does not begin with its manifest")
	}
	m := &Manifest{}
	if err := json.NewDecoder(archive).Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("%s: format %d, this program knows %d", manifestName, m.Format, format)
	}
	for _, f := range m.Files {
		local := filepath.IsLocal(filepath.FromSlash(strings.TrimPrefix(f.Name, statePrefix)))
		if f.Name != historyName && (!strings.HasPrefix(f.Name, statePrefix) || !local) {
			return nil, fmt.Errorf("%s: must not name %q", manifestName, f.Name)
		}
	}
	return m, nil
}
