package pipeline

import (
	"slices"
	"strconv"
	"strings"
)

// Out collects messages that a shard writes before its next checkpoint: dead letters and the calibrated stream.
// They are delivered at least once; a repeat after a crash has the same key and bytes.
type Out struct {
	pending []Message
	bytes   int
	// current is the record being processed: what a dead letter quotes.
	current Record
	counts  *Counts
}

// NewOut returns an empty collector that counts dead letters in c.
func NewOut(c *Counts) *Out { return &Out{counts: c} }

// Put adds a message; it must not share memory with the batch.
func (o *Out) Put(m Message) {
	o.pending = append(o.pending, m)
	o.bytes += len(m.Value)
}

// DeadLetter sends the record being processed to the dead-letter topic, as it came. Rows lists the rows that
// took no part; nil means the whole message.
func (o *Out) DeadLetter(reason, detail string, rows []int) {
	o.counts.AddReason(CountDeadLetters, reason, 1)
	r := &o.current
	hs := append([]Header(nil), r.Headers...)
	hs = append(hs,
		Header{"plumbline-reason", []byte(reason)},
		Header{"plumbline-detail", []byte(detail)},
		Header{"plumbline-topic", []byte(r.Topic)},
		Header{"plumbline-partition", strconv.AppendInt(nil, int64(r.Partition), 10)},
		Header{"plumbline-offset", strconv.AppendInt(nil, r.Offset, 10)})
	if rows != nil {
		hs = append(hs, Header{"plumbline-rows", []byte(rowList(rows))})
	}
	o.Put(Message{Stream: StreamDeadLetter, Partition: -1, Key: slices.Clone(r.Key), Value: slices.Clone(r.Value),
		Headers: hs, Time: r.Time})
}

// Skipped sends the dead letter of a record that is passed over. It names the record's place only: what is in the
// record has ended the task.
func (o *Out) Skipped(r Record, why string) {
	o.Begin(Record{Input: r.Input, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time})
	o.DeadLetter(ReasonPoison, why, nil)
}

func rowList(rows []int) string {
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(r))
	}
	return b.String()
}

func (o *Out) clear() { o.pending, o.bytes = nil, 0 }

// Begin says which record is processed from here on.
func (o *Out) Begin(r Record) { o.current = r }

// Drain returns what was collected, and forgets it.
func (o *Out) Drain() []Message {
	ms := o.pending
	o.clear()
	return ms
}
