package alarm

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
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
		switch {
		case !t.env.Maturity.On():
			plusPane(own, p)
		case a.waiting.At(t.env.Maturity, predictionPane, in.Index).add(p):
		default:
			t.env.Counts.Add(CountAlarmLate, set.LabelledRows())
		}
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
	if t.env.Maturity.On() {
		var out []alarmPane
		for _, slot := range a.waiting.Take(t.env.Maturity, in.Index) {
			out = append(out, alarmPane{id: (slot.Due + 1) * t.env.Pane, sums: slot.Sum.Pane})
		}
		return out, nil
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

// maturing are the sums of predictions that are still too young.
type maturing struct{ detect.Pane }

// add adds a pane and reports whether there is something to add it to.
func (m *maturing) add(p detect.Pane) bool {
	switch {
	case m == nil:
		return false
	case m.Pane == nil:
		m.Pane = p
	default:
		plusPane(m.Pane, p)
	}
	return true
}

// plusPane adds p to dst.
func plusPane(dst, p detect.Pane) {
	for j, b := range p {
		d := &dst[j]
		d.N1, d.C1, d.N0, d.C0 = d.N1+b.N1, d.C1+b.C1, d.N0+b.N0, d.C0+b.C0
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
