package pipeline

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Edit makes a section's body anew; body is nil where the checkpoint has no such section, and an answer of nil leaves
// it out.
type Edit func(body []byte) ([]byte, error)

// Amend returns a stored checkpoint with some of its sections changed, to be saved under a number of its own. Its files
// are brought to dir, where they must stay until it is saved. The versions of sections that are added are 1.
func Amend(st Stored, edits map[string]Edit, dir string) (Checkpoint, error) {
	data, err := st.Read()
	if err != nil {
		return Checkpoint{}, err
	}
	c, err := parseCheckpoint(data)
	if err != nil {
		return Checkpoint{}, err
	}
	for name, edit := range edits {
		s, ok := c.sections[name]
		if !ok {
			s.version = 1
		}
		if s.body, err = edit(s.body); err != nil {
			return Checkpoint{}, fmt.Errorf("section %s: %w", name, err)
		}
		if c.sections[name] = s; s.body == nil {
			delete(c.sections, name)
		}
	}
	for i := range c.files {
		c.files[i].Path = filepath.Join(dir, c.files[i].Name)
		if err := st.Fetch(c.files[i].Name, c.files[i].Path); err != nil {
			return Checkpoint{}, fmt.Errorf("file %s: %w", c.files[i].Name, err)
		}
	}
	sections := []Section{}
	for _, name := range slices.Sorted(maps.Keys(c.sections)) {
		s := c.sections[name]
		sections = append(sections, Section{Name: name, Version: s.version, State: rawState(s.body)})
	}
	if len(c.files) > 0 {
		sections[0].Files = rawFiles(c.files)
	}
	return EncodeCheckpoint(sections)
}

// Begun is the first checkpoint of a shard that begins with an empty state.
func Begun(next []int64, life *Life) (Checkpoint, error) {
	at := offsets(next)
	return EncodeCheckpoint([]Section{offsetsSection(&at), life.Section()})
}

// MoveOffsets changes where a shard reads on.
func MoveOffsets(change func(next []int64)) Edit {
	return func(body []byte) ([]byte, error) {
		next, err := readOffsets(body)
		if err != nil {
			return nil, err
		}
		change(next)
		return (*offsets)(&next).AppendState(nil)
	}
}

func readOffsets(body []byte) ([]int64, error) {
	r := binenc.NewReader(body)
	next := make([]int64, r.Count(1, maxPaneInputs))
	return next, (*offsets)(&next).RestoreState(body)
}

// EditLife changes what is known of a shard's life.
func EditLife(change func(*Life)) Edit {
	return func(body []byte) ([]byte, error) {
		l := &Life{}
		if body != nil {
			if err := l.RestoreState(body); err != nil {
				return nil, err
			}
		}
		change(l)
		return l.AppendState(nil)
	}
}

// rawState is a section's body as it was.
type rawState []byte

// AppendState implements State.
func (s rawState) AppendState(dst []byte) ([]byte, error) { return append(dst, s...), nil }

// RestoreState implements State.
func (s rawState) RestoreState([]byte) error { return fmt.Errorf("a section that was only copied") }

// rawFiles are a checkpoint's files as they were.
type rawFiles []File

// Files implements FileState.
func (f rawFiles) Files() []File { return f }

// RestoreFiles implements FileState.
func (f rawFiles) RestoreFiles([]byte, Fetch) error { return fmt.Errorf("files that were only copied") }
