package stage

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect"
)

// Pane is one label pane of a key, merged over all shards.
type Pane struct {
	Index, End int64 // index of the pane, and its end in event time
	Cells      []Cell
	Labelled   int64
	Counted    int64 // labelled rows that Key.Recent has got: those of the pane, or that are old enough (Maturity)
	Late       int64
	Rows       []acc.SampleRow // sampled rows, by (prediction time, id)
	Scored     Scored          // Rows scored by the calibrator in force
	ByClass    detect.Pane     // Rows of a whole version by detect.ClassCell, as Scored; nil above detect.MaxClasses
}

// Cell holds the rows of one prediction pane within a label pane.
type Cell struct {
	PredictionPane int64
	Set            *acc.Set
}

// Scored holds the sums of sampled rows as scored by the calibrator in force, by prediction pane.
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
