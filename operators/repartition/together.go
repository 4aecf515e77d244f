package repartition

import (
	"bytes"
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Together translates records of few rows into one message that has the rows of each; see inputs.Decoder.
type Together interface {
	// Start begins with a record and returns its rows; not ok: it goes alone.
	Start(r *pipeline.Record) (rows int, ok bool)
	// Add adds a record and returns its rows; not ok: it does not go with the ones before.
	Add(r *pipeline.Record) (rows int, ok bool)
	// Message has the rows of all records that were added, in an order of its own.
	Message() (value []byte, rows []int, err error)
}

// A record of one row costs ten times what a row costs in a message of many. So records of few rows that are at hand
// together go on together, one message for each place, whose offset is that of the last record. Which ones these are
// depends on what a fetch brought. A relay that begins again writes messages of others, so they have the offset of each
// row, by which shards leave out those that they have taken.

// held are records that go on with the next ones.
type held struct {
	records []pipeline.Record // copies
	of      []int             // the record of each row
	memory  []byte            // of their keys and values
	size    int               // of these and their headers, at most most
	most    int
	after   int64 // no record up to this offset is held: shards may have taken some of its rows
}

const (
	// maxHeld is how many rows go on together at once, and maxHeldBytes that of their bytes; these are at most a fourth
	// of the largest message, too, and one of them a 16th, since in Arrow they may take more.
	maxHeld      = 1000
	maxHeldBytes = 256 << 10
	// maxHeldTime is the longest time between them: their message has one timestamp.
	maxHeldTime = 1e9
)

func newHeld(c *Config) held {
	most := maxHeldBytes
	if n := c.Decode.MaxMessageBytes; n > 0 {
		most = min(most, n/4)
	}
	return held{most: most, after: lastTaken(c.Fence)}
}

// lastTaken is the last offset of which a shard had taken a row before there was another number of shards.
func lastTaken(f *pipeline.Fence) int64 {
	last := int64(-1)
	if f != nil {
		for _, filter := range f.Filters {
			for _, mark := range filter.Taken {
				last = max(last, mark.Offset)
			}
		}
	}
	return last
}

// hold takes a record that may go with others. with is false if it goes alone; ms are those of records that go no
// further together.
func (p *Converter) hold(r *pipeline.Record) (ms []pipeline.Message, with bool) {
	if !p.goesWith(r) {
		return p.Release(), false
	}
	h, rows := &p.held, 0
	if len(h.records) > 0 && h.near(r) {
		rows, with = p.cfg.Together.Add(r)
	}
	if !with {
		ms = p.Release()
		if rows, with = p.cfg.Together.Start(r); !with {
			return ms, false
		}
	}
	if rows == 0 { // such as an event of another kind
		p.counts.AddReason(CountEmpty, p.cfg.Input.String(), 1)
		return ms, true
	}
	h.add(r, rows)
	if len(h.of) >= maxHeld {
		ms = append(ms, p.Release()...)
	}
	return ms, true
}

// goesWith reports whether a record may go with the held ones or those after it.
func (p *Converter) goesWith(r *pipeline.Record) bool {
	return p.cfg.Together != nil && r.Offset > p.held.after && !r.Ahead && !r.Alone &&
		r.Unread == nil && !pipeline.IsControl(r) && sizeOf(r) <= p.held.most/4
}

// near reports whether there is room for a record, which is of about the same time as those before.
func (h *held) near(r *pipeline.Record) bool {
	return h.size+sizeOf(r) <= h.most &&
		math.Abs(float64(r.Time-h.records[0].Time)) <= maxHeldTime
}

func sizeOf(r *pipeline.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

func (h *held) add(r *pipeline.Record, rows int) {
	for range rows {
		h.of = append(h.of, len(h.records))
	}
	h.size += sizeOf(r)
	c := *r
	c.Key, c.Value = h.copied(r.Key), h.copied(r.Value)
	c.Headers = slices.Clone(r.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = bytes.Clone(c.Headers[i].Value)
	}
	h.records = append(h.records, c)
}

func (h *held) copied(b []byte) []byte {
	if b == nil {
		return nil
	}
	if h.memory == nil {
		h.memory = make([]byte, 0, h.most) // so what was copied stays where it is
	}
	from := len(h.memory)
	h.memory = append(h.memory, b...)
	return h.memory[from:len(h.memory):len(h.memory)]
}

// Release returns the messages of the held records.
func (p *Converter) Release() []pipeline.Message {
	h := &p.held
	if len(h.records) == 0 {
		return nil
	}
	ms, ok := p.together()
	if !ok { // as those that would be refused
		for _, r := range h.records {
			ms = append(ms, p.alone(r)...)
		}
	}
	clear(h.records)
	h.records, h.of, h.memory, h.size = h.records[:0], h.of[:0], h.memory[:0], 0
	return ms
}

// together returns the messages of the held records, one for each place; not ok if there would be more.
func (p *Converter) together() (ms []pipeline.Message, ok bool) {
	records, of := p.held.records, p.held.of
	value, rows, err := p.cfg.Together.Message()
	if err != nil || len(rows) != len(of) {
		return nil, false
	}
	last := records[len(records)-1]
	for i := range records {
		last.Time = max(last.Time, records[i].Time)
	}
	if len(records) > 1 {
		last.Headers = pipeline.TraceOf(last.Headers) // which says that it is not sampled, or goes on for all
	}
	offsets := make([][]int64, p.cfg.Targets) // of the rows, by place
	row, byID := 0, int64(0)
	parts, err := p.split.Split(value, arrowio.Origin{Topic: last.Topic, Partition: last.Partition,
		Offset: last.Offset, Time: last.Time}, p.kind(), p.cfg.Targets, func(id []byte) int {
		r := &records[of[rows[row]]]
		row++
		if id != nil && murmur.PartitionOf(id, int(p.cfg.Of)) == int(r.Partition) {
			byID++
		}
		to := place(r, id, p.cfg.Keyed, p.cfg.Targets)
		offsets[to] = append(offsets[to], r.Offset)
		return to
	})
	if err != nil || row != len(of) {
		return nil, false
	}
	for i := range parts {
		if i > 0 && parts[i].Place == parts[i-1].Place || parts[i].Rows != len(offsets[parts[i].Place]) {
			return nil, false
		}
	}
	p.byID = byID
	ms = p.messages(&last, parts)
	for i := range ms {
		if len(records) > 1 {
			ms[i].Headers = append(ms[i].Headers, pipeline.SourceRows(offsets[ms[i].Partition]))
		}
	}
	return ms, true
}
