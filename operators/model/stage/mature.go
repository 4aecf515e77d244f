package stage

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// Maturity says from when on a row counts in alarms, rules and refits. Where labels come sooner for wrong rows, the
// rows that are labelled since some time are wrong more often than all. So with After > 0 a row predicted in pane p
// counts from the end of label pane
//
//	p + ⌈After/Pane⌉
//
// on, however soon its label came, and never if that came later. The sample has both kinds of rows then.
type Maturity struct{ After, Pane int64 } // ns; After 0: a row counts when its label comes

// On reports whether rows wait.
func (m Maturity) On() bool { return m.After > 0 }

// panes is the age in panes, rounded up.
func (m Maturity) panes() int64 {
	if !m.On() {
		return 0
	}
	return (m.After + m.Pane - 1) / m.Pane
}

// due is the label pane at whose end a row predicted at ts counts.
func (m Maturity) due(ts int64) int64 {
	return pipeline.PaneIndex(ts, m.Pane) + m.panes()
}

// counts reports whether the label of a row came in time.
func (m Maturity) counts(row *acc.SampleRow) bool {
	return pipeline.PaneIndex(row.LabelTS, m.Pane) <= m.due(row.TS)
}

// Rows returns the rows that count at the end of a label pane, at most limit of them, and those that count from it on.
// Both are by (prediction time, id).
func (m Maturity) Rows(sample []acc.SampleRow, pane int64, limit int) (all, fresh []acc.SampleRow) {
	for i := range sample {
		row := &sample[i]
		if due := m.due(row.TS); due <= pane && m.counts(row) {
			if all = append(all, *row); due == pane {
				fresh = append(fresh, *row)
			}
		}
	}
	slices.SortFunc(all, CompareRows)
	slices.SortFunc(fresh, CompareRows)
	return all[max(0, len(all)-limit):], fresh
}

// Keep appends a pane's rows to the sample of a key. It forgets the oldest of the rows that are old enough, and of
// those that wait some that a hash of their ids chooses, so that what is kept does not depend on how soon a label came.
// At most limit rows of either kind are left.
func (m Maturity) Keep(k *Key, rows []acc.SampleRow, pane int64, limit int) {
	k.Keep(rows, len(k.Sample)+len(rows))
	if len(k.Sample) <= limit {
		return
	}
	var old, young []uint64 // order in which they go, the last first
	rank := func(row *acc.SampleRow) (to *[]uint64, rank uint64) {
		if m.due(row.TS) <= pane {
			return &old, ^uint64(row.TS) ^ 1<<63 // the newest is the least
		}
		return &young, binary.LittleEndian.Uint64(row.ID[8:]) * 0x9e3779b97f4a7c15 // other bits than those of canaries
	}
	for i := range k.Sample {
		to, r := rank(&k.Sample[i])
		*to = append(*to, r)
	}
	most := func(ranks []uint64) uint64 {
		if len(ranks) <= limit {
			return ^uint64(0)
		}
		slices.SortFunc(ranks, cmp.Compare[uint64])
		return ranks[limit-1]
	}
	lastOld, lastYoung := most(old), most(young)
	k.Sample = slices.DeleteFunc(k.Sample, func(row acc.SampleRow) bool {
		to, r := rank(&row)
		return to == &old && r > lastOld || to == &young && r > lastYoung
	})
}
