package pipeline

import (
	"context"
	"fmt"
)

// Input is an input of a task, see below.
type Input uint8

// The inputs of a shard. Panes is the model task's only input.
const (
	Logits Input = iota
	Labels
	Panes
)

var inputNames = [...]string{"logits", "labels", "panes"}

func (i Input) String() string { return inputNames[i] }

// Header is a Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of an input, or a notice. Idle: the input was read to its end and nothing came for the idle
// timeout. Paused: reading stops for a while.
type Record struct {
	Input     Input
	Topic     string
	Partition int32
	Offset    int64
	Time      Time // the record's timestamp; 0 = none
	Key       []byte
	Value     []byte
	Headers   []Header
	Idle      bool
	Paused    bool
	// Ahead: when the record was first read, its timestamp was too far ahead of the reader's clock to compare an event
	// time with it.
	Ahead bool
	// Alone: what becomes of the record goes on by itself, since the tracer follows it, or since the relay has ended at
	// it or a later one, which may be due to it.
	Alone bool
	// Unread says that the log has something at this offset, or up to it, that cannot be handed out. Only the place is
	// set then, and the task dead-letters that.
	Unread *Unread
}

// Unread says why there is no record.
type Unread struct {
	Reason string
	Detail string // for people, with the offsets
	First  int64  // of the offsets that it is about; the record's is the last
}

// As returns the reason as an error that wraps kind; nil if r is nil.
func (r *Unread) As(kind error) error {
	if r == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", kind, r.Reason, r.Detail)
}

// Source yields the records of one partition number over its co-partitioned topics, each topic in offset order.
type Source interface {
	// Next blocks for the next record, whose memory is valid until the call after; io.EOF ends a bounded input.
	Next(ctx context.Context) (Record, error)
	// Commit reports that everything before these offsets (by input) is in a durable checkpoint. It is advisory:
	// recovery reads the checkpoint, never the group's offsets.
	Commit(ctx context.Context, next map[Input]int64) error
	// CaughtUp reports whether everything that the log held has been handed out.
	CaughtUp() bool
	Close() error
}

// Visibility tracks how much of a source's output shows in the task's status. Offsets cannot tell: the status is from
// the last checkpoint, and a notice about an input moves no offset.
type Visibility interface {
	// HandedOut returns how many records and notices Next has returned.
	HandedOut() uint64
	// Shown reports that the status covers the first n of them; 0 before the first.
	Shown(n uint64)
}

// Stream names an output; the sink maps it to a topic.
type Stream string

// The outputs.
const (
	StreamPanes       Stream = "panes"
	StreamSnapshots   Stream = "snapshots"
	StreamCalibrators Stream = "calibrators"
	StreamTops        Stream = "tops" // corrections of the top confidence, on the topic of calibrators
	// refits that changed nothing: log, page, and the decisions topic by StreamHistory.
	StreamDecisions  Stream = "decisions"
	StreamAlerts     Stream = "alerts"
	StreamFinetune   Stream = "finetune"
	StreamHeads      Stream = "heads"
	StreamHistory    Stream = "history" // copies of decisions, calibrators, alerts, requests and verdicts
	StreamCalibrated Stream = "calibrated"
	StreamDeadLetter Stream = "deadletter"
	StreamLogits     Stream = "logits" // of the repartition stage, as the next
	StreamLabels     Stream = "labels"
)

// Sink delivers messages, in order by stream and partition. When Write returns nil they are durable.
// A repeated message has the same key and the same bytes, so that a repeat overwrites itself.
type Sink interface {
	Write(ctx context.Context, ms []Message) error
	Close() error
}
