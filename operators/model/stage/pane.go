package stage

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
)

// Pane is one label pane of a key, merged over the shards.
type Pane struct {
	Index, End int64 // index, and end in event time
	Cells      []Cell
	Labelled   int64
	Late       int64
	Rows       []acc.SampleRow // sampled rows, by (prediction time, id)
	Scored     Scored          // what the calibrator in force makes of them
}

// Cell is one prediction pane of a label pane.
type Cell struct {
	PredictionPane int64
	Set            *acc.Set
}

// Scored is what the calibrator in force makes of a pane's sampled rows, by prediction pane.
type Scored map[int64]*acc.Set

// CountsClasses reports whether shards count the pane's rows by class.
func (in *Pane) CountsClasses() bool {
	for _, c := range in.Cells {
		if c.Set.Classes != nil {
			return true
		}
	}
	return false
}

// CompareRows orders rows by prediction time, then id.
func CompareRows(a, b acc.SampleRow) int {
	return cmp.Or(cmp.Compare(a.TS, b.TS), slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.LabelTS, b.LabelTS))
}
