package arrowio

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Time is event time: nanoseconds since 1970-01-01T00:00:00Z.
type Time = int64

// ID is the 128-bit XXH3 hash of a prediction id's bytes (integers: 8 bytes, big endian).
// The stream keeps the hash only, so that waiting rows have one size.
type ID [16]byte

// Kind says what the rows of a Batch are.
type Kind uint8

const (
	// Predictions are rows of the logits topic; Label is -1 where the label is not yet known.
	Predictions Kind = iota
	// Labels are rows of the labels topic: ID, TS (arrival of the label) and Label; no scores.
	Labels
	// Labelled are predictions joined with their label: TS is the prediction's, LabelTS the label's.
	Labelled
)

// Origin is where a batch came from.
type Origin struct {
	Topic     string
	Partition int32
	Offset    int64
	// Time is the Kafka record's timestamp, in nanoseconds; 0 where there is none (files).
	Time Time
	// Ahead: the timestamp is in the future.
	Ahead bool
}

func (o Origin) String() string { return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset) }

// ModelKey names a model version.
type ModelKey struct{ Model, Version string }

// Batch is a typed view over one record. All slices have length N unless said otherwise. They may share
// the message's memory: a Batch is read-only and valid until the call that it was handed to returns.
type Batch struct {
	Origin Origin
	Kind   Kind
	N      int

	// Models are the distinct (model, version) pairs of the batch; Model indexes it by row.
	// Model is nil where all rows belong to Models[0].
	Models []ModelKey
	Model  []int32

	// Sources are the offsets of the records of which a message was made of several, by row; nil: it is one record.
	Sources []int64

	IDs []ID   // nil where the message has no id column
	TS  []Time // event time; the record's where the message has no ts column

	// K is the number of classes; Scores is the row-major N×K slab: logits, or probabilities if Probs.
	// A binary score column (logit or prob) has been expanded to K = 2: (0, z) or (1-p, p).
	K      int
	Scores []float32
	Probs  bool

	Label   []int32 // -1 = not yet known; nil where the message has no label column
	LabelTS []Time  // Labelled only

	D        int       // features per row; 0 where there are none
	Features []float32 // N×D; NaN rows where null

	Served []float32 // NaN where null; nil where absent
	Weight []float32 // 1 where null, NaN in requests and responses; nil where absent (all 1)

	// Slices are the configured slice columns that the message has.
	Slices []SliceColumn

	// Reject is the reason why a row takes no part, by row; nil where all rows are good. "" = good.
	Reject []string
	// BadLabel is the label of the first row that is rejected for it; "" where there is none.
	BadLabel string
	// Missing are the columns that the first row lacks that is rejected as NullRow; nil where there is none.
	Missing   []string
	missingAt int // that row
	// Side says whether the rows are predictions, or one of two parts of them.
	Side Side
	// Shadow says that the rows were computed here by another head: they follow rows that were received, and are
	// counted with them.
	Shadow bool

	keys *keyColumns // the id and ts columns as they came; nil for batches that were not decoded
	mem  *scratch    // what Release gives back; nil where there is nothing to reuse
	refs int32       // holders beyond the first
}

// Reasons why a row takes no part. The set is bounded: it becomes a metric label and a header.
const (
	NullRow         = "null_row"         // null id, ts, scores or model, or an empty id or model
	NonfiniteScores = "nonfinite_scores" // NaN or infinite logits; probabilities outside [0,1] or not summing to 1
	LabelRange      = "label_range"      // label outside [0, K)
	BadWeight       = "bad_weight"       // weight not finite or not in (0, 2^20]
	BadServed       = "bad_served"       // served confidence outside [0,1]
	TimeRange       = "ts_range"         // ts outside the years that nanoseconds cover, 1677 to 2262, or at their ends
)

// Rejected is the number of rows that take no part.
func (b *Batch) Rejected() int {
	n := 0
	for _, r := range b.Reject {
		if r != "" {
			n++
		}
	}
	return n
}

// reject marks row i; the first reason stays.
func (b *Batch) reject(i int, reason string) {
	if b.Reject == nil {
		b.Reject = make([]string, b.N)
	}
	if b.Reject[i] == "" {
		b.Reject[i] = reason
	}
}

// rejectNull marks row i, which has no value in a column that must have one.
func (b *Batch) rejectNull(i int, column string) {
	b.reject(i, NullRow)
	switch {
	case b.Reject[i] != NullRow || b.Missing != nil && i > b.missingAt:
	case b.Missing != nil && i == b.missingAt:
		if !slices.Contains(b.Missing, column) {
			b.Missing = append(b.Missing, column)
		}
	default:
		b.Missing, b.missingAt = []string{column}, i
	}
}

// Retain keeps the batch valid until one more Release.
func (b *Batch) Retain() { atomic.AddInt32(&b.refs, 1) }

// Release says that the caller is done with the batch. After the last one its slices may be reused by a
// later Decode. Optional: a batch that is never released is collected as garbage.
func (b *Batch) Release() {
	if atomic.AddInt32(&b.refs, -1) >= 0 || b.mem == nil {
		return
	}
	mem := b.mem
	*b = Batch{}
	mem.keys = keyColumns{} // columns hold on to their message
	clear(mem.cols)
	scratches.Put(mem)
}

// SliceColumn is one cohort column: Values[Index[i]] is the value of row i; Index[i] < 0 where null.
type SliceColumn struct {
	Name   string
	Values []string
	Index  []int32
}
