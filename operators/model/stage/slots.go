package stage

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Slots hold what was summed of predictions until these are old enough, in groups of prediction panes so large that at
// most maxSlots of them are open. The zero value is empty.
type Slots[T any] struct{ open map[int64]*T }

// maxSlots is the largest number of open slots.
const maxSlots = 32

// Slot is one that is old enough.
type Slot[T any] struct {
	Due int64 // label pane at whose end it was
	Sum *T
}

// SlotPanes is the length of a slot, in panes.
func (m Maturity) SlotPanes() int64 { return max(1, (m.panes()+maxSlots-1)/maxSlots) }

// dueSlot is the label pane at whose end a slot is old enough.
func (m Maturity) dueSlot(slot int64) int64 { return (slot+1)*m.SlotPanes() + m.panes() - 1 }

// At returns the sum that a prediction pane counts in at the end of label pane now: nil if that was complete before.
func (s *Slots[T]) At(m Maturity, predictionPane, now int64) *T {
	slot := pipeline.PaneIndex(predictionPane, m.SlotPanes())
	if m.dueSlot(slot) < now {
		return nil
	}
	return s.at(slot)
}

func (s *Slots[T]) at(slot int64) *T {
	if s.open == nil {
		s.open = map[int64]*T{}
	}
	if s.open[slot] == nil {
		s.open[slot] = new(T)
	}
	return s.open[slot]
}

// Take removes and returns the slots that are old enough at the end of label pane now, in order.
func (s *Slots[T]) Take(m Maturity, now int64) (due []Slot[T]) {
	for _, slot := range slices.Sorted(maps.Keys(s.open)) {
		at := m.dueSlot(slot)
		if at > now {
			break
		}
		due = append(due, Slot[T]{at, s.open[slot]})
		delete(s.open, slot)
	}
	return due
}

// Merge adds the slots of others; add adds a sum to another.
func (s *Slots[T]) Merge(o *Slots[T], add func(to, from *T)) {
	for slot, from := range o.open {
		add(s.at(slot), from)
	}
}

// Len is the number of open slots.
func (s *Slots[T]) Len() int { return len(s.open) }

// Append appends the open slots; sum appends one.
func (s *Slots[T]) Append(dst []byte, sum func(dst []byte, of *T) []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(s.open)))
	for _, slot := range slices.Sorted(maps.Keys(s.open)) {
		dst = sum(binenc.AppendVarint(dst, slot), s.open[slot])
	}
	return dst
}

// Restore reads what Append wrote; sum reads one.
func (s *Slots[T]) Restore(r *binenc.Reader, sum func(of *T)) {
	s.open = nil
	for range r.Count(2, binenc.MaxItems) {
		slot := r.Varint()
		var of T
		if sum(&of); r.Err() != nil {
			return
		}
		*s.at(slot) = of
	}
}
