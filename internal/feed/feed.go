package feed

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Feed is the message sequence of one or more sources. One goroutine calls it.
type Feed struct {
	opts    Options
	sources []Source
	schemas []Fields // of sources, with the model and version of opts

	source  int   // being read
	next    int64 // number of the row that is read next
	last    arrowio.Time
	row     Row
	rowTime arrowio.Time
	rowID   string
	loaded  bool // row is read and not yet sent
	done    bool // the sources are at their end
	closed  bool // the control messages are out

	labels  labelQueue
	pending [2][]pending // [stream][partition]
	groups  [2][]int     // [stream][source]: first source whose rows may share a message with this one's
	flushAt arrowio.Time // no pending row is due before it
	out     []Message    // made, not yet taken
}

// New returns the feed of one source.
func New(src Source, o Options) (*Feed, error) { return NewSequence([]Source{src}, o) }

// NewSequence returns the feed of several sources played one after another: one clock, one numbering of rows and one
// end. Sources with times of their own must be in order of time one after another too, unless EventRate is given.
func NewSequence(sources []Source, o Options) (*Feed, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, errors.New("feed of 0 sources: at least 1 is needed")
	}
	f := &Feed{opts: o, sources: sources, flushAt: math.MaxInt64, last: math.MinInt64}
	for i, src := range sources {
		s := src.Schema()
		if s.K < 1 {
			return nil, fmt.Errorf("source %d: number of classes %d: must be at least 1", i, s.K)
		}
		if o.Model != "" {
			s.Model, s.Models = o.Model, false
		}
		if o.Version != "" {
			s.Version, s.Versions = o.Version, false
		}
		f.schemas = append(f.schemas, s)
		f.groups[Logits] = append(f.groups[Logits], slices.IndexFunc(f.schemas, s.sameRows))
		f.groups[Labels] = append(f.groups[Labels], slices.IndexFunc(f.schemas, s.sameLabels))
	}
	for s := range f.pending {
		f.pending[s] = make([]pending, o.Partitions)
	}
	return f, nil
}

// LeavesTimes reports whether a source has times that its rows do not get.
func (f *Feed) LeavesTimes() bool {
	return slices.ContainsFunc(f.schemas, func(s Fields) bool { return s.Left })
}

// Finish ends the sources where they stand: Next yields what is pending, the labels still due and, if asked for, the
// control messages, then io.EOF. It is how an endless source ends.
func (f *Feed) Finish() { f.done = true }

// Owed is the number of the first row that was not taken, or whose label was not: with it as Skip a feed goes on.
func (f *Feed) Owed() int64 {
	n := f.next
	if f.loaded {
		n--
	}
	for i := range f.labels {
		n = min(n, f.labels[i].row)
	}
	for s := range f.pending {
		for i := range f.pending[s] {
			if p := &f.pending[s][i]; p.rows() > 0 {
				n = min(n, p.row)
			}
		}
	}
	for i := range f.out {
		n = min(n, f.out[i].Row)
	}
	return n
}

// Next returns the next message, io.EOF after the last, or a source's or the encoder's error, after which the feed is
// not to be used. Messages of one stream and partition come in order of event time.
func (f *Feed) Next() (Message, error) {
	for len(f.out) == 0 {
		if f.closed {
			return Message{}, io.EOF
		}
		if err := f.step(); err != nil {
			return Message{}, err
		}
	}
	m := f.out[0]
	f.out[0] = Message{}
	if f.out = f.out[1:]; len(f.out) == 0 {
		f.out = nil
	}
	return m, nil
}

// step takes the next event: the earlier of the next row and the next label, the row at a tie.
func (f *Feed) step() error {
	if !f.loaded && !f.done {
		if err := f.load(); err != nil {
			return err
		}
	}
	switch {
	case len(f.labels) > 0 && (!f.loaded || f.labels[0].time < f.rowTime):
		return f.sendLabel(f.labels.pop())
	case f.loaded:
		return f.sendRow()
	default:
		return f.end()
	}
}

// load reads rows up to the first that is not skipped, or sets done.
func (f *Feed) load() error {
	o := &f.opts
	for !f.done && !f.loaded {
		if o.Limit > 0 && f.next-o.Skip >= o.Limit { // their sum may be too large
			f.done = true
			return nil
		}
		switch err := f.sources[f.source].Next(&f.row); {
		case errors.Is(err, io.EOF):
			if f.source+1 == len(f.sources) {
				f.done = true
				return nil
			}
			f.source++
		case err != nil:
			return fmt.Errorf("row %d: %w", f.next, err)
		default:
			f.loaded = f.next >= o.Skip
			f.next++
		}
	}
	return f.place()
}

// place checks the row and gives it its time and id.
func (f *Feed) place() error {
	s, i := &f.schemas[f.source], f.next-1
	switch {
	case len(f.row.Scores) != s.K:
		return fmt.Errorf("row %d: %d scores, want %d", i, len(f.row.Scores), s.K)
	case len(f.row.Features) != s.D:
		return fmt.Errorf("row %d: %d features, want %d", i, len(f.row.Features), s.D)
	case len(f.row.Slices) != len(s.Slices):
		return fmt.Errorf("row %d: %d slice values, want %d", i, len(f.row.Slices), len(s.Slices))
	}
	previous := f.rowTime
	f.rowTime = f.opts.RowTime(i)
	if f.opts.EventRate == 0 && s.Times {
		f.rowTime = f.row.Time
	}
	if i > f.opts.Skip && f.rowTime < previous {
		return fmt.Errorf("row %d: time %d is before that of the row before it, %d: rows must come in order of time", i,
			f.rowTime, previous)
	}
	f.rowID = f.row.ID
	if f.rowID == "" {
		f.rowID = f.opts.IDPrefix + "-" + strconv.FormatInt(i, 10)
	}
	return nil
}

func (f *Feed) sendRow() error {
	f.loaded = false
	i, s := f.next-1, &f.schemas[f.source]
	if err := f.advance(f.rowTime); err != nil {
		return err
	}
	partition := int32(murmur.PartitionOf([]byte(f.rowID), f.opts.Partitions))
	if !f.opts.NoLabels && !f.opts.InlineLabels && f.row.Label >= 0 {
		after := f.row.LabelAfter
		if after == 0 {
			after = f.opts.labelDelay(i)
		}
		f.labels.push(label{
			time:      f.rowTime + after,
			row:       i,
			id:        f.rowID,
			class:     f.row.Label,
			model:     f.row.Model,
			version:   f.row.Version,
			partition: partition,
			source:    f.source,
		})
	}
	p, err := f.open(Logits, partition, f.source)
	if err != nil {
		return err
	}
	p.stamp(i, f.rowID, f.rowTime)
	p.addRow(s, &f.row, f.opts.InlineLabels && !f.opts.NoLabels)
	return f.added(Logits, partition)
}

func (f *Feed) sendLabel(l label) error {
	if err := f.advance(l.time); err != nil {
		return err
	}
	p, err := f.open(Labels, l.partition, l.source)
	if err != nil {
		return err
	}
	p.addLabel(&f.schemas[l.source], &l)
	return f.added(Labels, l.partition)
}

// advance moves the clock to t and sends the rows that may wait no longer.
func (f *Feed) advance(t arrowio.Time) error {
	f.last = t
	if t < f.flushAt {
		return nil
	}
	return f.flushDue(t)
}

// open returns the pending list of a partition for an event of source. What another model's or schema's rows wait
// there go first: one list for each would let messages overtake each other in event time.
func (f *Feed) open(stream Stream, partition int32, source int) (*pending, error) {
	p := &f.pending[stream][partition]
	if group := f.groups[stream][source]; p.group != group {
		if err := f.flush(stream, partition); err != nil {
			return nil, err
		}
		*p = pending{group: group}
	}
	return p, nil
}

// added accounts the event just appended to a pending list.
func (f *Feed) added(stream Stream, partition int32) error {
	p := &f.pending[stream][partition]
	if p.rows() == 1 {
		f.flushAt = min(f.flushAt, p.first+arrowio.Time(f.opts.FlushEvery))
	}
	if !p.full(&f.opts) {
		return nil
	}
	return f.flush(stream, partition)
}

// flushDue sends what has waited for FlushEvery at t, oldest list first.
func (f *Feed) flushDue(t arrowio.Time) error {
	type list struct {
		stream    Stream
		partition int32
		first     arrowio.Time
	}
	var due []list
	f.flushAt = math.MaxInt64
	for s := range f.pending {
		for i := range f.pending[s] {
			p := &f.pending[s][i]
			at := p.first + arrowio.Time(f.opts.FlushEvery)
			switch {
			case p.rows() == 0:
			case at <= t:
				due = append(due, list{Stream(s), int32(i), p.first})
			default:
				f.flushAt = min(f.flushAt, at)
			}
		}
	}
	slices.SortStableFunc(due, func(a, b list) int { return cmp.Compare(a.first, b.first) })
	for _, l := range due {
		if err := f.flush(l.stream, l.partition); err != nil {
			return err
		}
	}
	return nil
}

// flush sends the pending rows of one partition, if any.
func (f *Feed) flush(stream Stream, partition int32) error {
	p := &f.pending[stream][partition]
	if p.rows() == 0 {
		return nil
	}
	m, err := p.message(stream, partition, &f.schemas[p.group])
	if err != nil {
		return err
	}
	f.out = append(f.out, m)
	return nil
}

// end sends what is pending, then the control messages.
func (f *Feed) end() error {
	f.closed = true
	if err := f.flushDue(math.MaxInt64); err != nil {
		return err
	}
	if !f.opts.End || f.last == math.MinInt64 {
		return nil
	}
	w := paneEnd(f.last, arrowio.Time(f.opts.Pane))
	for s := range f.pending {
		if Stream(s) == Labels && (f.opts.NoLabels || f.opts.InlineLabels) {
			continue
		}
		for p := range f.opts.Partitions {
			f.out = append(f.out, Message{
				Stream: Stream(s), Partition: int32(p), Value: []byte{}, Time: f.last, Row: f.next - 1,
				Headers: []Header{{Key: WatermarkHeader, Value: strconv.AppendInt(nil, w, 10)}},
			})
		}
	}
	return nil
}

// paneEnd returns the end of the pane that holds t: (⌊t/pane⌋ + 1)·pane.
func paneEnd(t, pane arrowio.Time) arrowio.Time {
	q := t / pane
	if t%pane < 0 {
		q--
	}
	return (q + 1) * pane
}
