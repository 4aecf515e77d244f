package pipeline

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Ordered is a task whose decisions depend on the order in which it takes records of its inputs, and on when an input
// is idle. If its newest checkpoint is unusable, it must make the same decisions again from the one before. So a
// journal beside each checkpoint keeps the order.
type Ordered interface {
	// IdleInputs returns the inputs that count as idle now, as bits.
	IdleInputs() uint64
	// SetIdleInputs restores such a set, and decides nothing.
	SetIdleInputs(set uint64)
}

const (
	journalMagic   = "PLBO"
	journalVersion = 4
	withoutPause   = 3 // the version before, which has one kind of events less
	maxEvents      = 1 << 30
)

// Kinds of events, in the low bits of an event; the input is in the bits above.
const (
	eventTake  = iota // the records of an input before an offset
	eventIdle         // an input is exhausted
	eventClose        // reading ends
	eventSkip         // the record of an input before an offset is skipped
	eventAhead        // the next record's timestamp is not to be believed
	eventPause        // reading stops for a while
	eventKinds
)

// takeLog records the order in which a task takes records between two checkpoints. Its bytes are described at cut.
type takeLog struct {
	base   uint64 // the checkpoint that it follows; 0 = none
	idle   uint64 // inputs that were idle there
	events []byte
	count  int
	next   [8]int64 // by input: the offset after the last record taken, 0 where none was
	run    Record   // the latest take, not yet in events
	open   bool
}

func (j *takeLog) took(r Record) {
	switch {
	case int(r.Input) >= len(j.next):
		panic(fmt.Sprintf("pipeline: input %d in a journal", r.Input))
	case r.Idle:
		j.add(eventIdle, r.Input)
	case r.Paused:
		j.add(eventPause, r.Input)
	case r.Offset < j.next[r.Input]: // a task passes it over
	default:
		if j.open && j.run.Input != r.Input {
			j.flush()
		}
		if r.Ahead {
			j.add(eventAhead, r.Input)
		}
		j.run, j.open = Record{Input: r.Input, Offset: r.Offset}, true
	}
}

func (j *takeLog) skipped(r Record) {
	if r.Offset < j.next[r.Input] { // the task had passed it
		return
	}
	j.add(eventSkip, r.Input)
	j.until(r.Input, r.Offset+1)
}

func (j *takeLog) closing() { j.add(eventClose, 0) }

func (j *takeLog) add(kind int, in Input) {
	j.flush()
	j.events = binenc.AppendUvarint(j.events, uint64(in)*eventKinds+uint64(kind))
	j.count++
}

func (j *takeLog) flush() {
	if !j.open {
		return
	}
	j.open = false
	in := j.run.Input
	j.add(eventTake, in)
	j.until(in, j.run.Offset+1)
}

// until appends the offset after the last record of a take or skip.
func (j *takeLog) until(in Input, offset int64) {
	j.events = binenc.AppendVarint(j.events, offset-j.next[in])
	j.next[in] = offset
}

// cut returns the journal encoded, and begins the next one, which follows the checkpoint number: `PLBO`, u8 version,
// uvarint checkpoint that it follows (0 = none), uvarint inputs that were idle there (a bit each), uvarint events,
// each uvarint input·6 + kind (0: records taken, varint offset after the last, less that of the event before; 1: the
// input is idle; 2: the end of reading; 3: a record skipped, as 0; 4: the next record's timestamp was in the future; 5:
// a pause of reading), fixed32 CRC32C of all before. Version 3 has input·5 + kind, and no pauses.
func (j *takeLog) cut(number, idle uint64) []byte {
	j.flush()
	dst := append([]byte(journalMagic), journalVersion)
	dst = binenc.AppendUvarint(dst, j.base)
	dst = binenc.AppendUvarint(dst, j.idle)
	dst = binenc.AppendUvarint(dst, uint64(j.count))
	dst = append(dst, j.events...)
	dst = binenc.AppendFixed32(dst, crc32.Checksum(dst, castagnoli))
	*j = takeLog{base: number, idle: idle, events: j.events[:0]}
	return dst
}

// event is one entry of a journal.
type event struct {
	kind  int
	input Input
	until int64 // of a take and a skip: the offset after its last record
}

// past is a decoded journal.
type past struct {
	base, idle uint64
	events     []event
}

func decodeJournal(data []byte) (*past, error) {
	if len(data) < len(journalMagic)+5 || string(data[:len(journalMagic)]) != journalMagic {
		return nil, fmt.Errorf("%w: no %q at the start of %d bytes", ErrCheckpoint, journalMagic, len(data))
	}
	body, tail := data[:len(data)-4], binenc.NewReader(data[len(data)-4:])
	if got, want := crc32.Checksum(body, castagnoli), tail.Fixed32(); got != want {
		return nil, fmt.Errorf("%w: journal: CRC32C %08x, written %08x", ErrCheckpoint, got, want)
	}
	r := binenc.NewReader(body[len(journalMagic):])
	version := r.Byte()
	if version != journalVersion && version != withoutPause {
		r.Failf("version %d, this build reads %d and %d", version, withoutPause, journalVersion)
	}
	p := &past{base: r.Uvarint(), idle: r.Uvarint()}
	var next [len(takeLog{}.next)]int64
	for range r.Count(1, maxEvents) {
		code := r.Uvarint()
		if version == withoutPause {
			code += code / (eventKinds - 1)
		}
		e := event{kind: int(code % eventKinds), input: Input(min(code/eventKinds, math.MaxUint8))}
		if r.Err() == nil && int(e.input) >= len(next) {
			r.Failf("event of input %d, allowed are %d", e.input, len(next))
			break
		}
		if e.kind == eventTake || e.kind == eventSkip {
			next[e.input] += r.Varint()
			e.until = next[e.input]
		}
		p.events = append(p.events, e)
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("%w: journal: %w", ErrCheckpoint, err)
	}
	return p, nil
}

// pasts returns the journals between the usable checkpoint base and the newest of the unusable ones, which come newest
// first.
func pasts(base uint64, unusable []Stored) ([]*past, error) {
	var out []*past
	for at := unusable[0].Number; at != base; {
		i := slices.IndexFunc(unusable, func(s Stored) bool { return s.Number == at })
		if i < 0 {
			return nil, fmt.Errorf("the journal of checkpoint %d leads to %d, not to %d", unusable[0].Number, at, base)
		}
		if unusable[i].Journal == nil {
			return nil, fmt.Errorf("checkpoint %d has no journal", at)
		}
		data, err := unusable[i].Journal()
		if err != nil {
			return nil, fmt.Errorf("journal of checkpoint %d: %w", at, err)
		}
		p, err := decodeJournal(data)
		if err != nil {
			return nil, fmt.Errorf("journal of checkpoint %d: %w", at, err)
		}
		if p.base >= at {
			return nil, fmt.Errorf("%w: the journal of checkpoint %d follows checkpoint %d", ErrCheckpoint, at, p.base)
		}
		out, at = append(out, p), p.base
	}
	slices.Reverse(out)
	return out, nil
}

// pasts returns the journals between the restored checkpoint and the newest one. Without them the task goes on, and
// the log warns that it may decide otherwise than it has published.
func (rn Runner) pasts(t Registered, base uint64, unusable []Stored) []*past {
	if t.Order == nil || len(unusable) == 0 {
		return nil
	}
	ps, err := pasts(base, unusable)
	if err != nil {
		rn.Log.Error("the order of what was taken since is not known: late rows of that time may count twice or "+
			"not at all",
			"task", t.Name(), "err", err)
		return nil
	}
	return ps
}

// rereader is a source that hands records out again in the order of the journals.
type rereader struct {
	Source
	held  [len(takeLog{}.next)][]Record // read ahead of their turn, by input
	ahead [len(takeLog{}.next)]bool     // the next record of an input is one whose timestamp was not believed
}

// retake takes records again in the order of the journals. It saves no checkpoint before it is done: a checkpoint
// would make the rest of the journals unusable.
func (l *loop) retake(ctx context.Context, ps []*past) error {
	if len(ps) == 0 {
		return nil
	}
	task := l.task.Order
	src := &rereader{Source: l.src.Source}
	l.src.Source = src
	for _, p := range ps {
		task.SetIdleInputs(p.idle)
		for _, e := range p.events {
			if err := l.again(ctx, src, e); err != nil {
				return err
			}
		}
	}
	task.SetIdleInputs(0) // whether one is idle now is to be seen
	return nil
}

// again repeats one event of a journal.
func (l *loop) again(ctx context.Context, src *rereader, e event) error {
	switch e.kind {
	case eventClose:
		l.close()
		return nil
	case eventIdle:
		_, err := l.take(ctx, Record{Input: e.input, Idle: true})
		return err
	case eventPause:
		_, err := l.take(ctx, Record{Input: e.input, Paused: true})
		return err
	case eventAhead:
		src.ahead[e.input] = true
		return nil
	}
	for l.next(e.input) < e.until {
		r, err := src.of(ctx, e.input)
		if err != nil {
			return fmt.Errorf("%s: read again: %w", l.task.Name(), err)
		}
		if r.Offset >= e.until { // the last records of the run are not in the log any more
			src.held[e.input] = slices.Insert(src.held[e.input], 0, r.clone())
			return nil
		}
		r.Ahead, src.ahead[e.input] = src.ahead[e.input], false // as it was read then
		if e.kind == eventSkip && l.skip(r, skippedBefore) {
			continue
		}
		if _, err := l.take(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// skippedBefore is the reason given when a record is skipped because it was skipped the first time.
const skippedBefore = "it was skipped when it was first read"

// next returns the first offset of an input that the task has not taken.
func (l *loop) next(in Input) int64 { return l.task.Next()[in] }

// of returns the next record of one input, and holds back those of others until their turn.
func (s *rereader) of(ctx context.Context, in Input) (Record, error) {
	if h := s.held[in]; len(h) > 0 {
		s.held[in] = h[1:]
		return h[0], nil
	}
	for {
		r, err := s.Source.Next(ctx)
		switch {
		case err != nil:
			return r, err
		case r.Idle, r.Paused: // the journal says when; a pause of now is over before the next record comes
		case r.Input == in:
			return r, nil
		case int(r.Input) >= len(s.held):
			return r, fmt.Errorf("record of input %d", r.Input)
		default:
			s.held[r.Input] = append(s.held[r.Input], r.clone())
		}
	}
}

// Next implements Source. Records that were held back come first, oldest first as far as their age is known.
func (s *rereader) Next(ctx context.Context) (Record, error) {
	best := -1
	for i, h := range s.held {
		if len(h) > 0 && (best < 0 || h[0].Time < s.held[best][0].Time) {
			best = i
		}
	}
	if best < 0 {
		return s.Source.Next(ctx)
	}
	return s.of(ctx, Input(best))
}

// CaughtUp implements Source.
func (s *rereader) CaughtUp() bool {
	for _, h := range s.held {
		if len(h) > 0 {
			return false
		}
	}
	return s.Source.CaughtUp()
}

// clone returns a copy that shares no memory with r.
func (r Record) clone() Record {
	r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		r.Headers[i].Value = slices.Clone(r.Headers[i].Value)
	}
	return r
}
