package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// A deployment grows in three steps. First every shard seals its state: its last checkpoint says that no shard of the
// old number continues from it. Then every shard of the new number makes its first checkpoint from all sealed ones
// (Shard.Grow): waiting rows go to the shard that owns their id from now on, and sums stay where they are, because they
// may be split in any way. Last, the rows that no sealed state holds are split by the same owner (Fence).

// ErrSealed means that a checkpoint is one of another number of shards.
var ErrSealed = errors.New("the checkpoint is of another number of shards")

// OwnerOf returns the shard, of so many, that owns an id. It holds for topics that plumbline splits itself.
func OwnerOf(id arrowio.ID, of int) int { return int(binary.BigEndian.Uint32(id[12:]) % uint32(of)) }

// layout is the number of shards that the deployment had, and whether the state has been sealed.
type layout struct {
	of     int
	sealed bool
}

const layoutSection = "layout"

// AppendState implements State.
func (l *layout) AppendState(dst []byte) ([]byte, error) {
	return append(binenc.AppendUvarint(dst, uint64(l.of)), binenc.Flags(l.sealed)), nil
}

// RestoreState implements State.
func (l *layout) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	l.of, l.sealed = int(r.Int("shards", 1, maxShards)), r.Byte() == 1
	return r.Close()
}

// Seal lets the next checkpoint be the shard's last.
func (s *Shard) Seal() {
	if !s.layout.sealed {
		s.layout.sealed, s.dirty = true, true
	}
}

// Usable returns ErrSealed if the restored state is sealed, or was made with another number of shards.
func (s *Shard) Usable() error {
	if s.layout.sealed || s.layout.of != s.Outbox.of {
		return fmt.Errorf("%w: of %d, sealed: %t; this one is of %d", ErrSealed, s.layout.of, s.layout.sealed,
			s.Outbox.of)
	}
	return nil
}

// LayoutOf reads from a checkpoint the number of shards it was made with, and whether it is sealed.
func LayoutOf(data []byte) (of int, sealed bool, err error) {
	l := layout{}
	err = RestoreCheckpoint(data, []Section{{Name: layoutSection, Version: 1, State: &l}}, nil)
	return l.of, l.sealed, err
}

// Moving returns the edits that reduce a sealed checkpoint to what other shards take from it.
func (s *Shard) Moving() map[string]Edit {
	out := map[string]Edit{}
	gone := func([]byte) ([]byte, error) { return nil, nil }
	for _, section := range s.Sections() {
		out[section.Name] = gone
	}
	for _, section := range s.moving() {
		delete(out, section.Name)
	}
	return out
}

// moving returns the sections that every shard of the new number reads.
func (s *Shard) moving() []Section {
	out := []Section{offsetsSection((*offsets)(&s.next)), watermarkSection(s.Watermark),
		{Name: layoutSection, Version: 1, State: &s.layout}}
	for i := range s.Stages {
		if section, ok := s.Stages[i].section(); ok && s.Stages[i].Take != nil {
			out = append(out, section)
		}
	}
	return out
}

// staying returns the sections that only the new shard with the same ID takes over.
func (s *Shard) staying() []Section {
	out := []Section{s.Counts.CheckpointSection(), {Name: "outbox", Version: 1, State: s.Outbox},
		s.Outbox.epoch.CheckpointSection()}
	for i := range s.Stages {
		if section, ok := s.Stages[i].section(); ok && s.Stages[i].Take == nil {
			out = append(out, section)
		}
	}
	return out
}

// Growth is what a shard of the new number makes its first checkpoint from.
type Growth struct {
	Own    *Stored  // the sealed state of the shard with its ID; nil = there was none
	Sealed []Stored // all sealed states, perhaps reduced by Shard.Moving
	// Build makes a shard of the old number, to be filled.
	Build func(id int) (*Shard, error)
	// Fences has a fence for each partition of the topics that are split for the shard: the shard waits for messages
	// of all these partitions.
	Fences []Fence
}

// Grow fills an empty shard from sealed states. It reads its inputs from their start: they are new topics, split for
// this number of shards.
func (s *Shard) Grow(g Growth) error {
	if g.Own == nil {
		s.Outbox.epoch.Begin(NewEpoch(), nil)
	} else if err := restoreStored(*g.Own, s.staying()); err != nil {
		return err
	}
	wm := EndTime
	for i := range g.Sealed {
		at := (s.ID + i) % len(g.Sealed) // its own first
		old, err := g.Build(at)
		if err != nil {
			return err
		}
		err = s.takeOver(old, g.Sealed[at])
		wm = min(wm, old.Watermark.Now())
		s.Watermark.Clocks.takeOver(old.Watermark.Clocks)
		if err = errors.Join(err, old.Close()); err != nil {
			return fmt.Errorf("from shard %d of %d: %w", at, len(g.Sealed), err)
		}
	}
	// Rows of a pane that this shard had closed, and another had not, may now come here.
	for _, f := range g.Fences {
		s.Watermark.expect(f.Input, f.Topic, f.Partition)
	}
	s.Watermark.Clocks.goOn(wm, s.PaneLength)
	s.stages().reopen(wm)
	s.layout, s.dirty = layout{of: s.Outbox.of}, true
	s.panes.tell(false, nil, nil)
	return nil
}

// RestorePlace restores only the offsets and the watermark of a shard.
func (s *Shard) RestorePlace(st Stored) error {
	return restoreStored(st, []Section{offsetsSection((*offsets)(&s.next)),
		watermarkSection(s.Watermark)})
}

func restoreStored(st Stored, sections []Section) error {
	data, err := st.Read()
	if err != nil {
		return err
	}
	return RestoreCheckpoint(data, sections, st.Fetch)
}

// takeOver takes from a sealed state the rows whose ids this shard owns.
func (s *Shard) takeOver(old *Shard, st Stored) error {
	if err := restoreStored(st, old.moving()); err != nil {
		return err
	}
	if !old.layout.sealed {
		return fmt.Errorf("%s is not sealed", st.Name)
	}
	mine := func(id arrowio.ID) bool { return OwnerOf(id, s.Outbox.of) == s.ID }
	for i := range s.Stages {
		if take := s.Stages[i].Take; take != nil {
			if err := take(old.Stages[i].Operator, mine); err != nil {
				return fmt.Errorf("%s: %w", s.Stages[i].Name, err)
			}
		}
	}
	return nil
}

// Fence says which rows of a partition the sealed states have taken. They are not sent again when the topic is split.
type Fence struct {
	Input     Input    `json:"input"`
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	From      int64    `json:"from"` // the first offset that was not taken completely
	Filters   []Filter `json:"filters,omitempty"`
}

// Filter says which rows the shards of one number had taken.
type Filter struct {
	Keyed bool   `json:"keyed"` // shards owned rows by Kafka's partitioner; otherwise by OwnerOf
	Taken []Mark `json:"taken"` // by shard: the last message
}

// Mark is a place in what the repartition stage writes to one partition: the source offset, and the part of what was
// made of it. Offset -1 = before everything.
type Mark struct {
	Offset int64 `json:"offset"`
	Part   int32 `json:"part"`
}

// last returns the highest source offset that any shard consumed; -1 = none.
func (f *Filter) last() int64 {
	last := int64(-1)
	for _, m := range f.Taken {
		last = max(last, m.Offset)
	}
	return last
}

// DirectFence returns the fence of the partition of an input that the shard read directly, without the repartition
// stage.
func (s *Shard) DirectFence(in Input, topic string) Fence {
	return Fence{Input: in, Topic: topic, Partition: int32(s.ID), From: s.next[in]}
}

// SplitFences returns the fences of the partitions of a topic that the repartition stage splits, as far as the shards
// know them. before has the fences with which the stage began.
func SplitFences(shards []*Shard, in Input, topic string, before []Fence, keyed bool) []Fence {
	known := map[int32]bool{}
	for _, s := range shards {
		for k := range s.Watermark.sources {
			known[k.partition] = known[k.partition] || k.in == in && k.topic == topic
		}
	}
	for _, f := range before {
		known[f.Partition] = known[f.Partition] || f.Input == in && f.Topic == topic
	}
	var out []Fence
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if !known[p] {
			continue
		}
		f := fenceBehind(shards, sourceKey{in, topic, p}, keyed)
		if old := FenceOf(before, in, topic, int(p)); old != nil { // rows from before it were taken, by whomever
			f.From = max(f.From, old.From)
			for _, filter := range old.Filters {
				if filter.last() >= f.From {
					f.Filters = append(f.Filters, filter)
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// fenceBehind returns the fence behind what all shards have taken of a partition.
func fenceBehind(shards []*Shard, k sourceKey, keyed bool) Fence {
	taken, from := make([]Mark, len(shards)), int64(math.MaxInt64)
	for i, s := range shards {
		taken[i] = Mark{Offset: -1}
		if m := s.Watermark.sources[k]; m != nil {
			taken[i] = Mark{m.offset, m.part}
		}
		from = min(from, taken[i].Offset)
	}
	return Fence{Input: k.in, Topic: k.topic, Partition: k.partition, From: from,
		Filters: []Filter{{Keyed: keyed, Taken: taken}}}
}

// FenceOf returns the fence of a partition; nil = there is none.
func FenceOf(fences []Fence, in Input, topic string, partition int) *Fence {
	for i := range fences {
		if f := &fences[i]; f.Input == in && f.Topic == topic && int(f.Partition) == partition {
			return f
		}
	}
	return nil
}
