package arrowio

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Record is the id and ts columns of a decoded batch as they came (those that the message has), or nil
// for a batch that was not decoded. It views the message; the caller must Release it.
func (b *Batch) Record() arrow.Record {
	if b.keys == nil {
		return nil
	}
	r := record.New(b.N)
	b.addKeys(r)
	return r.Record()
}

// addKeys adds the id and ts columns.
func (b *Batch) addKeys(r *record.Builder) {
	if b.keys.id != nil {
		r.Add("id", b.keys.id.Valid != nil, keyArray(b.keys.id))
	}
	if b.keys.ts != nil {
		r.Add("ts", b.keys.ts.Valid != nil, keyArray(b.keys.ts))
	}
}

// keyArray is an Arrow array over a column that ids or times has checked.
func keyArray(c *wire.Column) arrow.Array {
	switch t := keyType(c.Field); c.Field.Type {
	case wire.Int, wire.Timestamp:
		return record.Array(t, c.N, c.Nulls, nil, c.Valid, c.Data)
	default:
		return record.Array(t, c.N, c.Nulls, nil, c.Valid, c.Data, c.Text)
	}
}

var timeUnits = [4]arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond}

func keyType(f *wire.Field) arrow.DataType {
	switch f.Type {
	case wire.Utf8:
		return arrow.BinaryTypes.String
	case wire.LargeUtf8:
		return arrow.BinaryTypes.LargeString
	case wire.Binary:
		return arrow.BinaryTypes.Binary
	case wire.LargeBinary:
		return arrow.BinaryTypes.LargeBinary
	case wire.Timestamp:
		return &arrow.TimestampType{Unit: timeUnits[f.Unit], TimeZone: "UTC"}
	}
	if f.Signed {
		return arrow.PrimitiveTypes.Int64
	}
	return arrow.PrimitiveTypes.Uint64
}

// EncodeCalibrated encodes the calibrated probabilities (n×K) of a decoded batch: its id and ts columns as
// they came, model and version, and either probs or the class and its confidence. Rejected rows have null scores. The
// message is one, whatever its size.
func EncodeCalibrated(b *Batch, probs []float32, o CalibratedOptions) ([]byte, error) {
	o.MaxBytes = 0
	parts, err := EncodeCalibratedParts(b, probs, o)
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// CalibratedOptions are what a message of calibrated probabilities holds.
type CalibratedOptions struct {
	TopClass    bool   // the class and its confidence, not probs
	Calibrator  string // the revisions that were applied, for the metadata plumbline.calibrator
	Corrections []Correction
	MaxBytes    int // of a message, unless it has one row; 0 = any
}

// Correction names what was applied on top of a revision of a calibrator, and has all of it, for the metadata
// plumbline.correction: nobody else keeps corrections. A row has the newest of its revision by its event time.
type Correction struct {
	Model         string `json:"model"`
	Version       string `json:"version"`
	Revision      int    `json:"revision"` // 0 = the identity
	EffectiveFrom string `json:"effective_from"`
	Correction    any    `json:"correction"` // as calib/calibrator encodes it
}

// EncodeCalibratedParts is EncodeCalibrated that makes several messages where one would have more than MaxBytes.
func EncodeCalibratedParts(b *Batch, probs []float32, o CalibratedOptions) ([][]byte, error) {
	if b.keys == nil {
		return nil, fmt.Errorf("encode calibrated: the batch was not decoded from a message")
	}
	if len(probs) != b.N*b.K {
		return nil, fmt.Errorf("encode calibrated: %d probabilities for %d rows of %d classes", len(probs), b.N, b.K)
	}
	r := record.New(b.N)
	if len(b.Models) == 1 {
		r = newRecord(b.N, b.Models[0].Model, b.Models[0].Version)
	}
	r.Meta(MetaCalibrator, o.Calibrator)
	if len(o.Corrections) > 0 {
		text, err := json.Marshal(o.Corrections)
		if err != nil {
			return nil, fmt.Errorf("encode calibrated: corrections: %w", err)
		}
		r.Meta(MetaCorrection, string(text))
	}
	b.addKeys(r)
	if len(b.Models) > 1 {
		b.addModels(r)
	}
	null := func(i int) bool { return b.Reject != nil && b.Reject[i] != "" }
	if o.TopClass {
		class, conf := topClass(probs, b.K)
		r.Add("class", true, record.Fixed(arrow.PrimitiveTypes.Int32, class, null))
		r.Add("confidence", true, record.Fixed(arrow.PrimitiveTypes.Float32, conf, null))
	} else {
		r.Add("probs", true, record.List(record.Fixed(arrow.PrimitiveTypes.Float32, probs, nil), b.N, b.K, null))
	}
	rec := r.Record()
	defer rec.Release()
	return encodeWithin(nil, rec, o.MaxBytes)
}

// encodeWithin appends the messages of a record's rows.
func encodeWithin(out [][]byte, rec arrow.Record, limit int) ([][]byte, error) {
	n := rec.NumRows()
	size := 0
	for _, c := range rec.Columns() {
		size += int(c.Data().SizeInBytes())
	}
	if limit == 0 || n < 2 || size <= 2*limit {
		value, err := record.Encode(rec)
		if err != nil || limit == 0 || n < 2 || len(value) <= limit {
			return append(out, value), err
		}
	}
	for _, part := range []arrow.Record{rec.NewSlice(0, n/2), rec.NewSlice(n/2, n)} {
		var err error
		out, err = encodeWithin(out, part, limit)
		part.Release()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (b *Batch) addModels(r *record.Builder) {
	model, version := make([]string, b.N), make([]string, b.N)
	for i, m := range b.Model {
		model[i], version[i] = b.Models[m].Model, b.Models[m].Version
	}
	r.Add("model", false, record.Strings(model))
	r.Add("version", false, record.Strings(version))
}

// topClass is the lowest index of the largest probability of each row, and that probability.
func topClass(probs []float32, k int) (class []int32, conf []float32) {
	n := len(probs) / k
	class, conf = make([]int32, n), make([]float32, n)
	for i := range n {
		row := probs[i*k : (i+1)*k]
		for j, p := range row {
			if p > row[class[i]] {
				class[i] = int32(j)
			}
		}
		conf[i] = row[class[i]]
	}
	return class, conf
}
