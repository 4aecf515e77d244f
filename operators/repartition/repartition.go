package repartition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Names of the counts of the repartition stage. Rows that go in and out are the same number at any moment between two
// messages: what cannot be split is a dead letter, with all its rows.
const (
	CountRepartitioned   = "repartitioned_messages" // taken, by input
	CountRepartitionRows = "repartitioned_rows"     // sent on, by input
	// CountEmpty counts the messages without rows, by input: tombstones, empty lists, events of other types.
	CountEmpty = "repartition_empty"
	CountParts = "repartition_parts" // messages made of them, by input
	// CountByID counts the rows that lay where a producer of keyed topics sends them, by input.
	CountByID = "repartition_rows_by_id"
)

// Config configures the converter.
type Config struct {
	Input     pipeline.Input // Logits or Labels
	Topic     string         // the unkeyed one
	Partition int32          // of it
	Of        int32          // partitions of it
	Targets   int            // partitions of the topic that shards read
	// Keyed: rows go where producers of a keyed topic send them, else to pipeline.OwnerOf their id.
	Keyed  bool
	Fence  *pipeline.Fence // rows that were taken before; nil = none
	Decode arrowio.Options
	// Translate makes messages in Arrow of a record in another format; nil = records are in Arrow.
	Translate func(r *pipeline.Record) ([][]byte, error)
	// Ready waits for what Translate needs for a record; nil = nothing.
	Ready func(ctx context.Context, r *pipeline.Record) error
	// Together translates records of few rows into one message; nil = each goes alone.
	Together Together
}

// Converter splits the messages of one partition by the ids of their rows into messages for the partitions of a topic
// that shards read: by the murmur2 hash, as Kafka's default partitioner and the producers of keyed topics do, or by
// pipeline.OwnerOf. The messages depend only on the record, those that go with it and the configuration, and their
// headers name the record. So a shard recognises a repeat, and the converter needs no state. Rows without an id need
// not meet another row: they go to a partition that follows from the record's place. Control records go to all.
type Converter struct {
	cfg    Config
	split  *arrowio.Splitter
	out    *pipeline.Out
	counts *pipeline.Counts
	next   int64 // offset after the last record; -1 = none yet
	byID   int64 // rows that lay where a keyed topic has them, since the last count
	rows   int   // of the record that was split last, those that were taken before included
	idle   bool  // that it is idle was announced; shards that have no message since still believe it
	held   held
}

// New returns the converter at the offset to be read next.
func New(cfg Config, next int64, out *pipeline.Out, counts *pipeline.Counts) *Converter {
	return &Converter{cfg: cfg, split: arrowio.NewSplitter(cfg.Decode), out: out, counts: counts, next: next,
		held: newHeld(&cfg)}
}

// streams are the outputs by input.
var streams = map[pipeline.Input]pipeline.Stream{pipeline.Logits: pipeline.StreamLogits,
	pipeline.Labels: pipeline.StreamLabels}

// Ready waits for what a record needs from elsewhere, such as its schema.
func (p *Converter) Ready(ctx context.Context, r *pipeline.Record) error {
	if p.cfg.Ready == nil || r.Unread != nil || pipeline.IsControl(r) {
		return nil
	}
	return p.cfg.Ready(ctx, r)
}

// Take returns the messages for a record, or those that announce that the source is idle.
func (p *Converter) Take(r pipeline.Record) []pipeline.Message {
	if r.Idle {
		return append(p.Release(), p.announce(true)...)
	}
	p.counts.AddReason(CountRepartitioned, p.cfg.Input.String(), 1)
	p.next = r.Offset + 1
	ms, with := p.hold(&r)
	if with {
		return ms
	}
	return append(ms, p.alone(r)...)
}

// alone returns the messages for a record that goes with no other.
func (p *Converter) alone(r pipeline.Record) []pipeline.Message {
	if r.Ahead {
		p.out.Ahead(&r)
	}
	if r.Unread != nil {
		p.out.Begin(r)
		p.out.Refuse(r.Unread.Reason, r.Unread.Detail)
		p.out.End()
		return p.out.Drain()
	}
	if pipeline.IsControl(&r) {
		p.counts.Add(pipeline.CountControl, 1)
		return p.everywhere(&r)
	}
	parts, err := p.parts(&r)
	if err != nil {
		p.byID = 0
		var de *arrowio.DecodeError
		if !errors.As(err, &de) {
			panic(fmt.Sprintf("repartition: split of offset %d: %v", r.Offset, err))
		}
		p.out.Begin(r)
		p.out.Refuse(de.Reason, de.Detail)
		p.out.End()
		return p.out.Drain()
	}
	if p.rows == 0 {
		p.counts.AddReason(CountEmpty, p.cfg.Input.String(), 1)
	}
	return p.messages(&r, parts)
}

// parts splits a record, without the rows that were taken before.
func (p *Converter) parts(r *pipeline.Record) ([]arrowio.Part, error) {
	var filters []pipeline.Filter
	if p.cfg.Fence != nil {
		filters = p.cfg.Fence.Filters
	}
	return p.splitFor(r, p.cfg.Keyed, p.cfg.Targets, filters)
}

func (p *Converter) splitFor(r *pipeline.Record, keyed bool, targets int, filters []pipeline.Filter) (
	[]arrowio.Part, error) {
	taken, err := p.taken(r, filters)
	if err != nil {
		return nil, err
	}
	kind := p.kind()
	values := [][]byte{r.Value}
	if p.cfg.Translate != nil {
		if values, err = p.cfg.Translate(r); err != nil {
			return nil, err
		}
	}
	origin := arrowio.Origin{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time}
	var parts []arrowio.Part
	p.rows = 0
	for _, value := range values {
		more, err := p.split.Split(value, origin, kind, targets, func(id []byte) int {
			p.rows++
			if taken(id) {
				return -1
			}
			if id != nil && murmur.PartitionOf(id, int(p.cfg.Of)) == int(r.Partition) {
				p.byID++
			}
			return place(r, id, keyed, targets)
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	slices.SortStableFunc(parts, func(a, b arrowio.Part) int { return cmp.Compare(a.Place, b.Place) })
	return parts, nil
}

// kind is what rows of the input are.
func (p *Converter) kind() arrowio.Kind {
	if p.cfg.Input == pipeline.Labels {
		return arrowio.Labels
	}
	return arrowio.Predictions
}

// place is where a row goes.
func place(r *pipeline.Record, id []byte, keyed bool, targets int) int {
	switch {
	case id == nil:
		return int((int64(r.Partition) + r.Offset) % int64(targets))
	case keyed:
		return murmur.PartitionOf(id, targets)
	}
	return pipeline.OwnerOf(arrowio.HashIDBytes(id), targets)
}

// taken returns what says of the rows of a record, one after the other, whether a shard had taken them before there was
// another number of shards. Filters are the newest first: what one number of shards was sent was filtered by those
// after it.
func (p *Converter) taken(r *pipeline.Record, filters []pipeline.Filter) (func(id []byte) bool, error) {
	if len(filters) == 0 {
		return func([]byte) bool { return false }, nil
	}
	f := filters[0]
	before, err := p.taken(r, filters[1:])
	if err != nil {
		return nil, err
	}
	rows := make([]int, len(f.Taken)) // that were taken of this record, by shard: the first ones
	for shard, mark := range f.Taken {
		if mark.Offset > r.Offset {
			rows[shard] = math.MaxInt
		} else if mark.Offset == r.Offset {
			if rows[shard], err = p.rowsUpTo(r, shard, filters); err != nil {
				return nil, err
			}
		}
	}
	return func(id []byte) bool {
		if before(id) {
			return true
		}
		shard := place(r, id, f.Keyed, len(f.Taken))
		rows[shard]--
		return rows[shard] >= 0
	}, nil
}

// rowsUpTo is how many rows of a record a shard was sent in the messages that it took.
func (p *Converter) rowsUpTo(r *pipeline.Record, shard int, filters []pipeline.Filter) (rows int, err error) {
	f := filters[0]
	parts, err := p.splitFor(r, f.Keyed, len(f.Taken), filters[1:])
	number := int32(0)
	for _, part := range parts {
		if part.Place == shard && number <= f.Taken[shard].Part {
			rows += part.Rows
			number++
		}
	}
	return rows, err
}

// Skip returns the dead letter of a record that cannot be split without ending the process; it names the place only.
func (p *Converter) Skip(r pipeline.Record, why string) []pipeline.Message {
	p.counts.AddReason(CountRepartitioned, p.cfg.Input.String(), 1)
	p.next = r.Offset + 1
	ms := p.Release()
	p.out.Skipped(r, 0, why)
	return append(ms, p.out.Drain()...)
}

func (p *Converter) messages(r *pipeline.Record, parts []arrowio.Part) []pipeline.Message {
	out := make([]pipeline.Message, 0, len(parts))
	number := int32(0)
	for i, part := range parts {
		if number++; i == 0 || parts[i-1].Place != part.Place {
			number = 0
		}
		p.counts.AddReason(CountRepartitionRows, p.cfg.Input.String(), int64(part.Rows))
		out = append(out, pipeline.Message{
			Stream:    streams[p.cfg.Input],
			Partition: int32(part.Place),
			Value:     part.Value,
			Headers:   p.headers(r, number),
			Time:      r.Time,
		})
	}
	p.counts.AddReason(CountParts, p.cfg.Input.String(), int64(len(out)))
	p.counts.AddReason(CountByID, p.cfg.Input.String(), p.byID)
	p.byID = 0
	return out
}

func (p *Converter) at(offset int64, part int32) pipeline.Header {
	return pipeline.Provenance{Topic: p.cfg.Topic, Partition: p.cfg.Partition, Of: p.cfg.Of, Offset: offset,
		Part: part}.AsHeader()
}

// headers are those of a part of a record.
func (p *Converter) headers(r *pipeline.Record, part int32) []pipeline.Header {
	out := append(kept(r), p.at(r.Offset, part))
	if r.Ahead {
		out = append(out, pipeline.Header{Key: pipeline.SourceAheadHeader, Value: []byte("1")})
	}
	return out
}

// Gather returns the entries of the decisions topic about the records that were taken since the last time.
func (p *Converter) Gather() []pipeline.Message {
	p.out.TellAhead()
	return p.out.Drain()
}

// kept are the headers of a record that its parts keep: every part has a copy, so there is a bound.
func kept(r *pipeline.Record) []pipeline.Header {
	out, _ := pipeline.BoundedHeaders(r.Headers)
	return slices.DeleteFunc(out, func(h pipeline.Header) bool {
		return h.Key == pipeline.SourceHeader || h.Key == pipeline.SourceIdleHeader ||
			h.Key == pipeline.SourceAheadHeader || h.Key == pipeline.SourceRowsHeader
	})
}

// everywhere sends a control record on to all partitions.
func (p *Converter) everywhere(r *pipeline.Record) []pipeline.Message {
	out := make([]pipeline.Message, p.cfg.Targets)
	for i := range out {
		out[i] = pipeline.Message{Stream: streams[p.cfg.Input], Partition: int32(i), Value: []byte{},
			Headers: p.headers(r, 0), Time: r.Time}
	}
	return out
}

// announce says to all partitions whether the source is idle.
func (p *Converter) announce(idle bool) []pipeline.Message {
	p.idle = idle
	value := []byte("0")
	if idle {
		value = []byte("1")
	}
	out := make([]pipeline.Message, p.cfg.Targets)
	for i := range out {
		out[i] = pipeline.Message{Stream: streams[p.cfg.Input], Partition: int32(i), Value: []byte{},
			Headers: []pipeline.Header{p.at(max(p.next, 0), 0), {Key: pipeline.SourceIdleHeader, Value: value}}}
	}
	return out
}

// Opening returns the messages before the first record: they say that the source is not idle. The previous reader may
// have been killed while the source was idle, and the watermark must not pass rows that came since.
func (p *Converter) Opening() []pipeline.Message { return p.announce(false) }

// Closing returns the messages for the end of reading: if the source was announced as idle, this is withdrawn, so that
// the watermark does not pass rows that come until the next reader.
func (p *Converter) Closing() []pipeline.Message {
	if !p.idle {
		return nil
	}
	return p.announce(false)
}
