package pipeline

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/filesum"
)

// ErrCheckpoint means that bytes are not a whole checkpoint of a known version.
var ErrCheckpoint = errors.New("damaged or foreign checkpoint")

// ErrUnusable means that there are checkpoints, but none can be used. The task does not start from nothing instead,
// because that would count rows twice or lose them: a person must decide.
var ErrUnusable = errors.New("no checkpoint can be used")

// ErrSettings means that a state was made with other settings than the present ones. Falling back to an older
// checkpoint is no way out: it may not have that state yet, or not say which settings made it.
var ErrSettings = errors.New("made with other settings")

// FormatError says that a checkpoint is whole, and of another format than this build reads: the build that wrote it can
// use it.
type FormatError struct {
	Section    string // "" = the frame
	Has, Reads byte
}

func (e *FormatError) Error() string {
	if e.Section == "" {
		return fmt.Sprintf("version %d, this build reads %d", e.Has, e.Reads)
	}
	return fmt.Sprintf("section %s has version %d, this build reads version %d", e.Section, e.Has, e.Reads)
}

const (
	checkpointMagic   = "PLBC"
	checkpointVersion = 4 // of the frame: each section has a version of its own
	maxSections       = 1 << 16
	maxSection        = 1 << 34
	maxFiles          = 1 << 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrFenced means that another process has written checkpoints of the task since this one read them. The other process
// owns the task now, and this one must stop writing.
var ErrFenced = errors.New("another process has taken over")

// CheckpointStore keeps the numbered checkpoints of tasks by key. Numbers rise by one, and each has only one writer:
// so a process that was stopped or cut off cannot overwrite the work of the one that took its task over.
type CheckpointStore interface {
	// Save writes checkpoint number, which must be one more than the newest that Load found or this writer saved. It
	// is atomic; when it returns nil, the checkpoint and its files are durable. Files of the checkpoint before are not
	// written again. It calls c.Prepared when all bytes are written and before the checkpoint counts. ErrFenced: that
	// number or a later one exists.
	Save(ctx context.Context, key string, number uint64, c Checkpoint) error
	// Holds returns ErrFenced if there is a checkpoint beyond number: another process owns the task.
	Holds(ctx context.Context, key string, number uint64) error
	// Lost reports whether what was saved of a key is gone while this process has the task: it is to be saved anew,
	// also where nothing has changed since. Only a process that has it all can mend that. It does not wait.
	Lost(key string) bool
	// Load returns the checkpoints of a key, newest first; empty where there is none.
	Load(ctx context.Context, key string) ([]Stored, error)
}

// Stored is one saved checkpoint, read on demand.
type Stored struct {
	Name   string
	Number uint64 // from 1
	Read   func() ([]byte, error)
	// Fetch copies a file of the checkpoint to a path. The reader compares its bytes with the hash in its name.
	Fetch Fetch
	// Journal returns the bytes saved as Checkpoint.Journal; nil if there are none.
	Journal func() ([]byte, error)
}

// Checkpoint is the encoded state of a task at one moment.
type Checkpoint struct {
	Data  []byte // valid until Save returns: the next checkpoint is written over it
	Files []File // that Data refers to
	// Journal is the order in which records were taken since the checkpoint before. It is stored apart from Data, so
	// that damage to one leaves the other; nil if it is not needed.
	Journal []byte
	// Unusable lists stored checkpoints that could not be restored. A store does not count them among those that it
	// keeps to fall back to.
	Unusable []uint64
	// Ready is called when Data, Files and Journal are safe and only the claim that makes the checkpoint count is
	// left. It writes the outputs that may come twice, so a store without room for a checkpoint has published nothing.
	// After an error the checkpoint does not count. nil: nothing to do.
	Ready func() error
}

// Prepared calls Ready.
func (c *Checkpoint) Prepared() error {
	if c.Ready == nil {
		return nil
	}
	return c.Ready()
}

// Kept returns how many of the given checkpoint numbers, newest first, must stay so that n usable ones stay.
func (c *Checkpoint) Kept(numbers []uint64, n int) int {
	for i, number := range numbers {
		if slices.Contains(c.Unusable, number) {
			continue
		}
		if n--; n == 0 {
			return i + 1
		}
	}
	return len(numbers)
}

// Section is a named part of a checkpoint.
type Section struct {
	Name    string
	Version byte // of the encoding of State; a section of another version is refused, unless it is not below Oldest
	Oldest  byte // 0 = Version. State is not told which it reads: older bytes say by themselves what they lack
	State   State
	Files   FileState // where part of State is in files; nil = nowhere
	Fresh   func()    // called instead of RestoreState if a checkpoint has no such section; may be nil
}

// restore fills the state from a parsed checkpoint. If the checkpoint has no such section, the state starts empty.
func (s *Section) restore(c *contents, fetch Fetch) error {
	stored, ok := c.sections[s.Name]
	switch {
	case !ok:
		if s.Fresh != nil {
			s.Fresh()
		}
		return nil
	case !s.reads(stored.version):
		return &FormatError{s.Name, stored.version, s.Version}
	case s.Files != nil:
		return s.Files.RestoreFiles(stored.body, fetch)
	}
	return s.State.RestoreState(stored.body)
}

// reads reports whether the state can be filled from a section of a version.
func (s *Section) reads(version byte) bool {
	return version == s.Version || s.Oldest > 0 && s.Oldest <= version && version < s.Version
}

// Freezer is a state that can be copied much faster than it can be encoded.
type Freezer interface {
	State
	// Freeze copies the state and returns a function that encodes the copy, at any time and on any goroutine; nil if a
	// copy would take too much memory.
	Freeze() func(dst []byte) ([]byte, error)
}

// EncodeCheckpoint writes magic, version, the sections, each with its version and CRC32C, and the names and sizes of
// the files that they refer to, then the CRC32C of the whole.
func EncodeCheckpoint(sections []Section) (Checkpoint, error) {
	d, err := draftCheckpoint(nil, sections)
	if err != nil {
		return Checkpoint{}, err
	}
	return d.finish()
}

// draft is a checkpoint of which some sections were copied and are still to be encoded.
type draft struct {
	data   []byte
	files  []File
	frozen []frozen
}

// frozen is a section that was copied.
type frozen struct {
	Section
	append func(dst []byte) ([]byte, error)
}

// draftCheckpoint does what the task must stand still for: it encodes sections into dst, which is empty, and freezes
// the others. Frozen sections come last.
func draftCheckpoint(dst []byte, sections []Section) (d draft, err error) {
	d.data = append(append(dst, checkpointMagic...), checkpointVersion)
	d.data = binenc.AppendUvarint(d.data, uint64(len(sections)))
	for _, s := range sections {
		if f, ok := s.State.(Freezer); ok {
			if later := f.Freeze(); later != nil {
				d.frozen = append(d.frozen, frozen{s, later})
				continue
			}
		}
		if err := d.encode(&s, s.State.AppendState); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *draft) encode(s *Section, appendTo func(dst []byte) ([]byte, error)) (err error) {
	d.data = append(binenc.AppendString(d.data, s.Name), s.Version)
	from := len(d.data)
	if d.data, err = binenc.AppendBlock(d.data, appendTo); err != nil {
		return fmt.Errorf("encode state of %s: %w", s.Name, err)
	}
	_, n := binary.Uvarint(d.data[from:])
	d.data = binenc.AppendFixed32(d.data, crc32.Checksum(d.data[from+n:], castagnoli))
	if s.Files != nil {
		d.files = append(d.files, s.Files.Files()...)
	}
	return nil
}

// finish encodes the frozen sections.
func (d *draft) finish() (Checkpoint, error) {
	c := Checkpoint{Files: d.files}
	for i := range d.frozen {
		if err := d.encode(&d.frozen[i].Section, d.frozen[i].append); err != nil {
			return c, err
		}
		d.frozen[i] = frozen{} // free the copy before the checkpoint is saved
	}
	dst := binenc.AppendUvarint(d.data, uint64(len(c.Files)))
	for _, f := range c.Files {
		name, err := hex.DecodeString(f.Name)
		if err != nil || len(name) != filesum.Size {
			return c, fmt.Errorf("encode file %q: its name is no hash", f.Name)
		}
		dst = append(dst, name...)
		dst = binenc.AppendUvarint(dst, uint64(f.Bytes))
	}
	c.Data = binenc.AppendFixed32(dst, crc32.Checksum(dst, castagnoli))
	return c, nil
}

// contents is a parsed checkpoint.
type contents struct {
	sections map[string]storedSection
	files    []File // without paths
}

type storedSection struct {
	version byte
	body    []byte
}

// parseCheckpoint checks every CRC and parses a checkpoint.
func parseCheckpoint(data []byte) (*contents, error) {
	if len(data) < 9 || string(data[:4]) != checkpointMagic {
		return nil, fmt.Errorf("%w: no %q at the start of %d bytes", ErrCheckpoint, checkpointMagic, len(data))
	}
	if data[4] != checkpointVersion {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, &FormatError{"", data[4], checkpointVersion})
	}
	body, tail := data[:len(data)-4], binenc.NewReader(data[len(data)-4:])
	if got, want := crc32.Checksum(body, castagnoli), tail.Fixed32(); got != want {
		return nil, fmt.Errorf("%w: CRC32C %08x, written %08x", ErrCheckpoint, got, want)
	}
	r := binenc.NewReader(body[5:])
	c := &contents{sections: map[string]storedSection{}}
	for range r.Count(7, maxSections) {
		name, version := r.String(1<<10), r.Byte()
		b := r.Bytes(maxSection)
		crc := r.Fixed32()
		if r.Err() == nil && crc32.Checksum(b, castagnoli) != crc {
			return nil, fmt.Errorf("%w: section %s has CRC32C %08x, written %08x", ErrCheckpoint, name,
				crc32.Checksum(b, castagnoli), crc)
		}
		c.sections[name] = storedSection{version, b}
	}
	for range r.Count(filesum.Size+1, maxFiles) {
		name := hex.EncodeToString(r.Raw(filesum.Size))
		c.files = append(c.files, File{Name: name, Bytes: r.Int("bytes", 0, math.MaxInt64)})
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return c, nil
}

// Files reads which files a checkpoint refers to.
func Files(data []byte) ([]File, error) {
	c, err := parseCheckpoint(data)
	if err != nil {
		return nil, err
	}
	return c.files, nil
}

// RestoreCheckpoint fills the sections from data, and from the files that fetch copies.
func RestoreCheckpoint(data []byte, sections []Section, fetch Fetch) error {
	c, err := parseCheckpoint(data)
	if err != nil {
		return err
	}
	for i := range sections {
		if err := sections[i].restore(c, fetch); err != nil {
			return fmt.Errorf("restore %s: %w", sections[i].Name, err)
		}
	}
	return nil
}

// CheckFormat returns a FormatError where a task of these sections cannot read a checkpoint.
func CheckFormat(data []byte, sections []Section) error {
	c, err := parseCheckpoint(data)
	if err != nil {
		return err
	}
	for i := range sections {
		s := &sections[i]
		if stored, ok := c.sections[s.Name]; ok && !s.reads(stored.version) {
			return &FormatError{s.Name, stored.version, s.Version}
		}
	}
	return nil
}

// Edit returns the new body of a section, or nil to leave the section out. body is nil if the checkpoint has no such
// section.
type Edit func(body []byte) ([]byte, error)

// Amend returns a stored checkpoint with some sections edited, to be saved under a new number. Its files are copied to
// dir, where they must stay until it is saved. Added sections have version 1.
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

// Begun returns the first checkpoint of a shard with an empty state that reads from the given offsets.
func Begun(next []int64, e *Epoch) (Checkpoint, error) {
	at := offsets(next)
	return EncodeCheckpoint([]Section{offsetsSection(&at), e.CheckpointSection()})
}

// MoveOffsets returns an edit of the offsets from which a shard reads on.
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

// EditState returns an edit of a state; one that the checkpoint has not is the zero value.
func EditState[S any, P interface {
	*S
	State
}](change func(P)) Edit {
	return func(body []byte) ([]byte, error) {
		s := P(new(S))
		if body != nil {
			if err := s.RestoreState(body); err != nil {
				return nil, err
			}
		}
		change(s)
		return s.AppendState(nil)
	}
}

// rawState is the body of a section that is copied unchanged.
type rawState []byte

// AppendState implements State.
func (s rawState) AppendState(dst []byte) ([]byte, error) { return append(dst, s...), nil }

// RestoreState implements State.
func (s rawState) RestoreState([]byte) error { return fmt.Errorf("a section that was only copied") }

// rawFiles are files of a checkpoint that are copied unchanged.
type rawFiles []File

// Files implements FileState.
func (f rawFiles) Files() []File { return f }

// RestoreFiles implements FileState.
func (f rawFiles) RestoreFiles([]byte, Fetch) error { return fmt.Errorf("files that were only copied") }
