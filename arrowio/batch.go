package arrowio

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
}

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
	Weight []float32 // 1 where null; nil where absent (all 1)

	// Slices are the configured slice columns that the message has.
	Slices []SliceColumn

	// Reject is the reason why a row takes no part, by row; nil where all rows are good. "" = good.
	Reject []string
	// Raw is the message's value as it came, for the dead-letter topic; nil for joined batches.
	Raw []byte
}

// SliceColumn is one cohort column: Values[Index[i]] is the value of row i; Index[i] < 0 where null.
type SliceColumn struct {
	Name   string
	Values []string
	Index  []int32
}
