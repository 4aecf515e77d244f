package feed

import (
	"reflect"

	"github.com/plumbline/plumbline/arrowio"
)

// Fields says what the rows of a Source have. It does not change over the source's life.
type Fields struct {
	Model, Version   string
	Models, Versions bool // each row names its own

	K      int      // scores a row
	Probs  bool     // the scores are probabilities, not logits
	D      int      // features a row; 0 = none
	Times  bool     // rows have a time of their own, in order
	Left   bool     // rows have a time of their own, which their order leaves
	Served bool     // rows have a served confidence
	Weight bool     // rows have a weight
	Slices []string // names of the slice columns
}

// sameRows reports whether predictions of the two schemas may share a message.
func (s Fields) sameRows(t Fields) bool { return reflect.DeepEqual(s, t) }

// sameLabels reports whether labels of the two schemas may share a message.
func (s Fields) sameLabels(t Fields) bool {
	return s.Model == t.Model && s.Version == t.Version && s.Models == t.Models && s.Versions == t.Versions
}

// Row is one prediction. Slices in it belong to the source and are valid until its next call.
type Row struct {
	ID       string       // "" = made from the row's number
	Time     arrowio.Time // read where Schema.Times
	Scores   []float32    // K
	Label    int32        // -1 = never known
	Model    string       // read where Schema.Models
	Version  string       // read where Schema.Versions
	Features []float32    // D
	Served   float32      // NaN = null
	Weight   float32
	Slices   []string // one value a column of Schema.Slices

	// LabelAfter is the time from this row to its label; 0 = as the options say.
	LabelAfter arrowio.Time
}

// Source yields rows in feed order. One goroutine calls it.
type Source interface {
	Schema() Fields
	// Next overwrites row with the next one; io.EOF after the last. Endless sources never return it.
	Next(row *Row) error
}
