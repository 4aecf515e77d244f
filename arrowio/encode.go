package arrowio

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// Columns are predictions to encode: n rows by the first of Logits (n×K), Probs (n×K), IDs, TS or Label
// that is set. The others are nil or have n rows too.
type Columns struct {
	Model, Version string // schema metadata
	// Models and Versions are those of the rows, where they are not of one; "" = null.
	Models, Versions []string
	IDs              []string
	TS               []Time // absent: the Kafka record's
	K                int
	Logits           []float32 // n×K; or
	Probs            []float32 // n×K
	Label            []int32   // -1 → null
	D                int
	Features         []float32      // n×D
	HalfFeatures     bool           // write features as float16
	Served, Weight   []float32      // NaN → null
	Slices           []StringColumn // "" → null: such a row is in no slice of the column
}

// StringColumn is a text column.
type StringColumn struct {
	Name   string
	Values []string
}

// rows is n of c, or an error naming the column that disagrees.
func (c *Columns) rows() (int, error) {
	n := -1
	var err error
	set := func(name string, length, per int) {
		if length == 0 || err != nil {
			return
		}
		if per <= 0 || length%per != 0 {
			err = fmt.Errorf("column %s: %d values are no multiple of %d a row", name, length, per)
			return
		}
		if n < 0 {
			n = length / per
		}
		if length/per != n {
			err = fmt.Errorf("column %s: %d rows, the columns before have %d", name, length/per, n)
		}
	}
	set("logits", len(c.Logits), c.K)
	set("probs", len(c.Probs), c.K)
	set("id", len(c.IDs), 1)
	set("ts", len(c.TS), 1)
	set("label", len(c.Label), 1)
	set("features", len(c.Features), c.D)
	set("model", len(c.Models), 1)
	set("version", len(c.Versions), 1)
	set("served", len(c.Served), 1)
	set("weight", len(c.Weight), 1)
	for _, s := range c.Slices {
		set(s.Name, len(s.Values), 1)
	}
	if err == nil && n < 0 {
		err = fmt.Errorf("no rows")
	}
	return n, err
}

// EncodePredictions encodes c as the value of a record of the logits topic. It does not judge the values.
func EncodePredictions(c Columns) ([]byte, error) {
	if len(c.Logits) > 0 && len(c.Probs) > 0 {
		return nil, fmt.Errorf("encode predictions: both logits and probs are set, want one")
	}
	if len(c.Logits) == 0 && len(c.Probs) == 0 {
		return nil, fmt.Errorf("encode predictions: neither logits nor probs are set")
	}
	rec, err := c.record()
	if err != nil {
		return nil, fmt.Errorf("encode predictions: %w", err)
	}
	defer rec.Release()
	return record.Encode(rec)
}

// EncodeLabels encodes the value of a record of the labels topic: row i says that the prediction ids[i]
// has turned out to be of class label[i], known since ts[i]. ts may be nil: the Kafka record's time.
func EncodeLabels(model, version string, ids []string, ts []Time, label []int32) ([]byte, error) {
	return EncodeLabelRows(Columns{Model: model, Version: version, IDs: ids, TS: ts, Label: label})
}

// EncodeLabelRows is EncodeLabels of rows that may be of several models and versions.
func EncodeLabelRows(c Columns) ([]byte, error) {
	if len(c.IDs) != len(c.Label) {
		return nil, fmt.Errorf("encode labels: %d labels for %d ids", len(c.Label), len(c.IDs))
	}
	rec, err := c.record()
	if err != nil {
		return nil, fmt.Errorf("encode labels: %w", err)
	}
	defer rec.Release()
	return record.Encode(rec)
}

// record builds the record of all columns that are set.
func (c *Columns) record() (arrow.Record, error) {
	n, err := c.rows()
	if err != nil {
		return nil, err
	}
	b := newRecord(n, c.Model, c.Version)
	if len(c.IDs) > 0 {
		b.Add("id", false, record.Strings(c.IDs))
	}
	if len(c.TS) > 0 {
		b.Add("ts", false, record.Fixed(arrow.FixedWidthTypes.Timestamp_ns, c.TS, nil))
	}
	if len(c.Logits) > 0 {
		b.Add("logits", false, record.Slab(c.Logits, c.K))
	}
	if len(c.Probs) > 0 {
		b.Add("probs", false, record.Slab(c.Probs, c.K))
	}
	if len(c.Label) > 0 {
		b.Add("label", true,
			record.Fixed(arrow.PrimitiveTypes.Int32, c.Label, func(i int) bool { return c.Label[i] < 0 }))
	}
	if len(c.Features) > 0 {
		b.Add("features", true, record.Features(c.Features, c.D, c.HalfFeatures))
	}
	if len(c.Served) > 0 {
		b.Add("served", true, record.NaNNull(c.Served))
	}
	if len(c.Weight) > 0 {
		b.Add("weight", true, record.NaNNull(c.Weight))
	}
	for _, s := range []StringColumn{{"model", c.Models}, {"version", c.Versions}} {
		if len(s.Values) > 0 {
			b.Add(s.Name, false, record.Strings(s.Values))
		}
	}
	for _, s := range c.Slices {
		if len(s.Values) > 0 {
			b.Add(s.Name, true, record.Texts(s.Values))
		}
	}
	return b.Record(), nil
}

// newRecord makes the builder of a message of one model version.
func newRecord(n int, model, version string) *record.Builder {
	b := record.New(n)
	b.Meta(MetaModel, model)
	b.Meta(MetaVersion, version)
	return b
}
