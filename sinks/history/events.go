package history

import (
	"errors"
	"strconv"
	"time"
)

// Event is one record that was added to a History. Seq counts from 1.
type Event struct {
	Seq            uint64
	Type           string // snapshot | alert | calibrator
	Model, Version string
	Record         any // *record.Snapshot, *record.Alert or *record.Calibrator: read-only
}

// ErrTooManySubscribers is returned by Subscribe at Config.Subscribers; the caller may try again later.
var ErrTooManySubscribers = errors.New("too many event subscribers")

// Subscription receives the events that follow Backlog.
type Subscription struct {
	// Backlog are the wanted events after the asked one, oldest first. Complete is false if some are gone or the asked
	// number is of another run: then Backlog is empty and the reader must load the state anew.
	Backlog  []Event
	Complete bool
	// Seq is the number of the last event before those of Next.
	Seq uint64
	// Wake has a value when Next has an event. It is closed when the subscriber fell too far behind, or closed itself.
	Wake <-chan struct{}

	wake  chan struct{}
	wants func(Event) bool
	queue queue
	h     *History
}

// Next removes and returns the oldest event that waits; false where none does.
func (s *Subscription) Next() (Event, bool) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.queue.take()
}

// Passed is the number up to which no event waits: they were taken, replaced or not wanted.
func (s *Subscription) Passed() uint64 {
	s.h.mu.RLock()
	defer s.h.mu.RUnlock()
	if e := s.queue.order.Front(); e != nil {
		return e.Value.(Event).Seq - 1
	}
	return s.h.bus.seq
}

// Close ends the subscription; it may be called twice.
func (s *Subscription) Close() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.bus.remove(s)
}

// Subscribe starts a subscription to the events that wants says, nil = all, after event number seq of the run epoch; an
// empty epoch asks for new events only. wants is called while the history is locked.
func (h *History) Subscribe(epoch string, seq uint64, wants func(Event) bool) (*Subscription, error) {
	if wants == nil {
		wants = func(Event) bool { return true }
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.bus.subs) >= h.cfg.Subscribers {
		return nil, ErrTooManySubscribers
	}
	wake := make(chan struct{}, 1)
	s := &Subscription{Seq: h.bus.seq, Wake: wake, wake: wake, wants: wants, queue: newQueue(h.cfg), h: h}
	var all []Event
	all, s.Complete = h.bus.after(epoch, seq)
	for _, e := range all {
		if wants(e) {
			s.Backlog = append(s.Backlog, e)
		}
	}
	h.bus.subs[s] = struct{}{}
	return s, nil
}

// Position is the epoch and the number of the latest event: what is read after it holds at least that event.
func (h *History) Position() (epoch string, seq uint64) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.bus.epoch, h.bus.seq
}

// bus numbers events, keeps the latest ones and hands them to subscribers. The History's lock guards it.
type bus struct {
	epoch   string // tells the runs of a program apart: numbers are comparable within one epoch only
	seq     uint64
	backlog []Event // the latest, oldest first
	keep    int     // at least this many stay in backlog, and fewer than twice as many
	subs    map[*Subscription]struct{}
}

func newBus(cfg Config) bus {
	return bus{
		epoch: strconv.FormatInt(time.Now().UnixNano(), 36),
		keep:  cfg.Backlog,
		subs:  map[*Subscription]struct{}{},
	}
}

func (b *bus) publish(e Event) (dropped uint64) {
	b.seq++
	e.Seq = b.seq
	b.backlog = append(b.backlog, e)
	if len(b.backlog) >= 2*b.keep {
		// Trimmed by halves, so that an event costs amortised constant time.
		n := copy(b.backlog, b.backlog[len(b.backlog)-b.keep:])
		clear(b.backlog[n:])
		b.backlog = b.backlog[:n]
	}
	for s := range b.subs {
		if !s.wants(e) {
			continue
		}
		if !s.queue.put(e) {
			b.remove(s)
			dropped++
			continue
		}
		select {
		case s.wake <- struct{}{}:
		default: // it knows
		}
	}
	return dropped
}

func (b *bus) remove(s *Subscription) {
	if _, ok := b.subs[s]; ok {
		delete(b.subs, s)
		close(s.wake)
	}
}

// after returns the events after number seq of a run; they are the bus's own.
func (b *bus) after(epoch string, seq uint64) (events []Event, complete bool) {
	switch {
	case epoch == "":
		return nil, true
	case epoch != b.epoch || seq > b.seq:
		return nil, false
	case seq == b.seq:
		return nil, true
	case len(b.backlog) == 0 || seq+1 < b.backlog[0].Seq:
		return nil, false
	}
	return b.backlog[seq+1-b.backlog[0].Seq:], true
}
