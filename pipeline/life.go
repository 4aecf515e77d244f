package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Life is from when to when a task's state was never lost. What counts what the task has written counts anew in
// another life.
type Life struct {
	// Epoch names the life; 0 is that of a replay, whose messages nobody else reads.
	Epoch uint64
	// Loss is what the life before took along, where a person has ordered this one; nil = it is the first.
	Loss *record.Loss

	known bool // Loss has its end, the shard has reached an event time
	told  bool // the readers of the panes topic have been told
}

// NewEpoch draws an epoch.
func NewEpoch() uint64 { return rand.Uint64() | 1 }

// Life is the shard's.
func (s *Shard) Life() *Life { return s.Outbox.life }

// Begin makes an empty life one that a person has ordered after a loss, or, without one, the first.
func (l *Life) Begin(epoch uint64, loss *record.Loss) { *l = Life{Epoch: epoch, Loss: loss} }

// Move notes a loss of records that were never read; the state is what it was.
func (l *Life) Move(loss *record.Loss) { l.Loss, l.known, l.told = loss, false, false }

// Section is the life's part of a checkpoint.
func (l *Life) Section() Section { return Section{Name: "life", Version: 1, State: l} }

// reached sets the end of the loss to the newest event time when the shard first knows one: what was lost had come
// before.
func (l *Life) reached(wm Time, lateness int64) {
	if l.Loss == nil || l.known {
		return
	}
	loss := *l.Loss
	if wm < EndTime-lateness {
		loss.Until = record.At(wm + lateness)
	}
	l.Loss, l.known = &loss, true
}

// tell returns the loss once its bounds are known, and once only.
func (l *Life) tell() *record.Loss {
	if !l.known || l.told {
		return nil
	}
	l.told = true
	return l.Loss
}

// AppendState implements State.
func (l *Life) AppendState(dst []byte) ([]byte, error) {
	dst = append(binenc.AppendFixed64(dst, l.Epoch), binenc.Flags(l.Loss != nil, l.known, l.told))
	if l.Loss != nil {
		dst = appendLoss(dst, l.Loss)
	}
	return dst, nil
}

// RestoreState implements State.
func (l *Life) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	l.Epoch = r.Fixed64()
	flags := r.Byte()
	l.known, l.told = flags&2 != 0, flags&4 != 0
	if flags&1 != 0 {
		var err error
		if l.Loss, err = readLoss(&r); err != nil {
			return err
		}
	}
	return r.Close()
}

const maxLoss = 1 << 20

// appendLoss writes a loss as its record's JSON: it is rare, and what it says may grow.
func appendLoss(dst []byte, l *record.Loss) []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("pipeline: loss: %v", err)) // strings, numbers and times
	}
	return binenc.AppendBytes(dst, b)
}

func readLoss(r *binenc.Reader) (*record.Loss, error) {
	b := r.Bytes(maxLoss)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return record.Decode[record.Loss](b)
}

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
