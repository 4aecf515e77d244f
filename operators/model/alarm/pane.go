package alarm

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// alarmPane is one step of an alarm's tests. id is the event time at which its rows were complete.
type alarmPane struct {
	id      int64
	sums    detect.Pane
	classes detect.Pane // the same rows by detect.ClassCell, where they are tested; else nil
}

// Counts of rows that alarms cannot use as they are.
const (
	// CountAlarmWeights counts labelled rows in sums that contain a weight above alarm.max_weight. The alarm scales
	// such sums down.
	CountAlarmWeights = "alarm_rows_over_weight"
	// CountAlarmLate counts labelled rows whose label came later than alarm.matured after the prediction.
	CountAlarmLate = "alarm_rows_late"
)

// panes returns the steps that a label pane completes: its own rows, or in matured mode the prediction panes that have
// just become old enough.
func (t *Stage) panes(spec *spec, a *keyAlarm, in *stage.Pane) ([]alarmPane, error) {
	own := make(detect.Pane, spec.Bins)
	add := func(predictionPane int64, set *acc.Set) error {
		if set.LabelledRows() == 0 {
			return nil
		}
		p, err := t.sums(spec, &set.Labelled.MSP)
		if err != nil {
			return err
		}
		if spec.Matured > 0 {
			if !a.waiting.add(spec, t.env.Pane, predictionPane, in.Index, p) {
				t.env.Counts.Add(CountAlarmLate, set.LabelledRows())
			}
			return nil
		}
		plusPane(own, p)
		return nil
	}
	if a.signal != stage.SignalCalibrated {
		for _, c := range in.Cells {
			if err := add(c.PredictionPane, c.Set); err != nil {
				return nil, err
			}
		}
	} else {
		for _, p := range slices.Sorted(maps.Keys(in.Scored)) {
			if err := add(p, in.Scored[p]); err != nil {
				return nil, err
			}
		}
	}
	if spec.Matured > 0 {
		return a.waiting.take(spec, t.env.Pane, in.Index), nil
	}
	p := alarmPane{id: in.End, sums: own}
	if a.classes > 0 {
		p.classes = slices.Clone(in.ByClass)
		spec.scale(p.classes, int64(len(in.Rows)), p.classes.N())
	}
	return []alarmPane{p}, nil
}

// sums returns the sums of a grid by bin, with weights scaled to at most 1.
func (t *Stage) sums(spec *spec, g *acc.Grid) (detect.Pane, error) {
	p, err := detect.FromGrid(g, spec.Bins)
	if err != nil {
		return nil, err
	}
	n, w := g.Total()
	if spec.scale(p, n, w) {
		t.env.Counts.Add(CountAlarmWeights, n)
	}
	return p, nil
}

// scale divides the sums of n rows by the largest weight, or where their Σw is above that by their mean weight.
func (s *spec) scale(p detect.Pane, n int64, w float64) (above bool) {
	f := 1 / s.MaxWeight
	if above = w*f > float64(n)*(1+1e-9); above {
		f = float64(n) / w
	}
	if f != 1 {
		p.Scale(f)
	}
	return above
}

// plusPane adds p to dst.
func plusPane(dst, p detect.Pane) {
	for j, b := range p {
		d := &dst[j]
		d.N1, d.C1, d.N0, d.C0 = d.N1+b.N1, d.C1+b.C1, d.N0+b.N0, d.C0+b.C0
	}
}

// maturing holds the sums of predictions that are still too young, by slot. A slot is a group of prediction panes, so
// large that at most maxSlots slots are open.
type maturing struct{ slots map[int64]detect.Pane }

// maxSlots is the largest number of open slots.
const maxSlots = 32

// slot returns the length of slots, in panes.
func (s *spec) slot(pane int64) int64 {
	panes := (int64(s.Matured) + pane - 1) / pane
	return max(1, (panes+maxSlots-1)/maxSlots)
}

// due returns the label pane at whose end a slot is old enough.
func (s *spec) due(slot, pane int64) int64 {
	return (slot+1)*s.slot(pane) + (int64(s.Matured)+pane-1)/pane - 1
}

// add puts sums into their slot. It returns false if the slot is already past.
func (m *maturing) add(s *spec, pane, predictionPane, now int64, p detect.Pane) bool {
	slot := pipeline.PaneIndex(predictionPane, s.slot(pane))
	if s.due(slot, pane) < now {
		return false
	}
	if m.slots == nil {
		m.slots = map[int64]detect.Pane{}
	}
	if have := m.slots[slot]; have != nil {
		plusPane(have, p)
	} else {
		m.slots[slot] = p
	}
	return true
}

// take removes and returns the slots that are due by the end of label pane now, in order.
func (m *maturing) take(s *spec, pane, now int64) []alarmPane {
	var out []alarmPane
	for _, slot := range slices.Sorted(maps.Keys(m.slots)) {
		due := s.due(slot, pane)
		if due > now {
			break
		}
		out = append(out, alarmPane{id: (due + 1) * pane, sums: m.slots[slot]})
		delete(m.slots, slot)
	}
	return out
}

func (m *maturing) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(m.slots)))
	for _, slot := range slices.Sorted(maps.Keys(m.slots)) {
		dst = appendPane(binenc.AppendVarint(dst, slot), m.slots[slot])
	}
	return dst
}

func (m *maturing) restore(r *binenc.Reader, bins int) {
	for range r.Count(2, binenc.MaxItems) {
		slot := r.Varint()
		p := restorePane(r, bins)
		if r.Err() != nil {
			return
		}
		if m.slots == nil {
			m.slots = map[int64]detect.Pane{}
		}
		m.slots[slot] = p
	}
}

// appendPane appends the bins that have rows, with their indices.
func appendPane(dst []byte, p detect.Pane) []byte {
	n := 0
	for _, b := range p {
		if b.N() > 0 {
			n++
		}
	}
	dst = binenc.AppendUvarint(dst, uint64(n))
	for j, b := range p {
		if b.N() > 0 {
			dst = binenc.AppendFloat64s(binenc.AppendUvarint(dst, uint64(j)), b.N1, b.C1, b.N0, b.C0)
		}
	}
	return dst
}

func restorePane(r *binenc.Reader, bins int) detect.Pane {
	p := make(detect.Pane, bins)
	last := -1
	for range r.Count(33, bins) {
		j := int(r.Int("bin", 0, int64(bins-1)))
		if j <= last {
			r.Failf("bin %d after bin %d", j, last)
			return p
		}
		last = j
		p[j] = detect.BinSums{N1: r.Float64(), C1: r.Float64(), N0: r.Float64(), C0: r.Float64()}
		if !(p[j].N1 >= 0 && p[j].N0 >= 0 && p[j].N() > 0 && p[j].C1 >= 0 && p[j].C0 >= 0) {
			r.Failf("bin %d has sums %v", j, p[j])
		}
	}
	return p
}
