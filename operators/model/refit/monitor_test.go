package refit

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

func revisions(g *monitor) (out []int) {
	for _, r := range g.baselines {
		out = append(out, r.revision)
	}
	return out
}

// TestMonitorBaselines: baselines are the previous calibrator, those that a change replaced, and the
// identity. A calibrator that a refit by period replaced is dropped at the next publication. All baselines can be
// restored from a checkpoint.
func TestMonitorBaselines(t *testing.T) {
	t.Parallel()
	var g *monitor
	var old *stage.InForce
	for i, c := range []struct {
		reason string
		want   []int // expected baselines; 0 = the identity
	}{
		{reasonPeriod, []int{0}}, {reasonAlarm, []int{1, 0}}, {reasonPeriod, []int{2, 1, 0}}, {reasonPeriod,
			[]int{3, 1, 0}}, {reasonAlarm, []int{4, 1, 0}},
		{reasonRollback, []int{5, 4, 1, 0}}, {reasonAlarm, []int{6, 5, 4, 1, 0}}, {reasonPeriod,
			[]int{7, 6, 5, 4, 0}}, {reasonManual, []int{8, 6, 5, 4, 0}},
	} {
		f := inForceAs(t, i+1, 1.5+float64(i), c.reason)
		g = g.next(old, f, 1)
		if got := revisions(g); !slices.Equal(got, c.want) {
			t.Fatalf("revision %d by %s is tested against %v, want %v", f.Revision, c.reason, got, c.want)
		}
		old = f
	}
	// A calibrator that comes back is not its own baseline.
	if got := revisions(g.next(old, inForceAs(t, 10, 1.5+5, reasonRollback), 1)); !slices.Equal(got,
		[]int{9, 8, 5, 4, 0}) {
		t.Errorf("after the return of revision 6 the baselines are %v", got)
	}
	r := binenc.NewReader(g.append(nil))
	back := &monitor{}
	if err := back.restore(&r, 4); err != nil || !slices.Equal(revisions(back), revisions(g)) {
		t.Errorf("restored %v, %v; want %v", revisions(back), err, revisions(g))
	}
}

// TestReturnToEarlierRegime: a stream that returns to an earlier regime gets the calibrator of that time back, not one
// of the refits in between and not the identity.
func TestReturnToEarlierRegime(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	x.stage.deps.Build = "1.2.3"
	sharp := inForceAs(t, 0, 2.5, "") // right for rows of Sharpness 2.5
	now := batchtest.Start - second
	for _, c := range []struct {
		temperature float64
		reason      string
	}{{2.5, reasonAlarm}, {.8, reasonAlarm}, {.7, reasonPeriod}, {.75, reasonPeriod}} {
		f := inForceAs(t, 0, c.temperature, c.reason)
		d := record.Calibrator{Reason: c.reason}
		x.must(x.putInForce(&d, f.Cal, f.Encoded, now))
	}
	rows := sample(batchtest.Rows(106, batchtest.Options{N: 600, Sharpness: 2.5}))
	for i := 0; i < len(rows) && x.version.InForceRevision() == 4; i += 100 {
		now += 10 * second
		if _, err := x.stepMonitor(&stage.Pane{Rows: rows[i : i+100], Labelled: 100, End: now}); err != nil {
			t.Fatal(err)
		}
	}
	f := x.version.Newest()
	c := x.published(pipeline.StreamCalibrators)
	last := c[len(c)-1]
	if f.Revision != 5 || string(f.Encoded) != string(sharp.Encoded) || last.Restores == nil || *last.Restores != 1 ||
		last.Reason != reasonRollback || last.Build != "1.2.3" {
		t.Errorf("in force is revision %d, %s, %+v; want that of before the change, revision 1, again, by build 1.2.3",
			f.Revision, f.Encoded, last)
	}
}

// TestRollbackTellsOfTheChange: evidence of long ago may stay, a little, while the calibrator in force gains. When it
// is taken back, the record is of the rows since it began to lose.
func TestRollbackTellsOfTheChange(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	f := inForceAs(t, 0, 2, reasonAlarm)
	x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, f.Cal, f.Encoded, batchtest.Start-second))
	identity := x.monitor.baselines[0]
	end, began := batchtest.Start, int64(0)
	for i := range uint64(40) {
		sharpness := 2. // for which it is right
		if i >= 20 {
			sharpness = .7
		}
		rows := sample(batchtest.Rows(300+i, batchtest.Options{N: 100, Sharpness: sharpness, Start: end}))
		if i == 20 {
			began = end
		}
		end = rows[len(rows)-1].TS + 1
		if i < 20 {
			for j := range identity.nll { // of an earlier loss
				identity.nll[j] = max(identity.nll[j], 1)
			}
		}
		rolled, err := x.stepMonitor(&stage.Pane{Rows: rows, Labelled: 100, End: end})
		x.must(err)
		if !rolled {
			continue
		}
		c := x.published(pipeline.StreamCalibrators)
		e := c[len(c)-1].Evidence
		if from := e.FitTo.Std().UnixNano(); i < 20 || e.NLLNew >= e.NLLInForce || from < began-100*second {
			t.Errorf("rolled back in pane %d, NLL %.4f → %.4f since %d rows before the change; want less, since then",
				i, e.NLLInForce, e.NLLNew, (began-from)/second)
		}
		return
	}
	t.Error("not rolled back")
}

// TestChangeAmidValidation: a candidate with enough evidence waits if its newest rows, or an alarm that began after its
// rows, show that the stream has changed.
func TestChangeAmidValidation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after float64 // sharpness of the newest rows
		fires bool
		want  bool
	}{{"no change", 2.5, false, true}, {"newest rows against it", .4, false, false}, {"an alarm since", 2.5, true,
		false}} {
		x := newFixture(t, testConfig(), 4)
		k := x.key
		k.Sample = sample(batchtest.Rows(107, batchtest.Options{N: 3000, Sharpness: 2.5}))
		end := k.Sample[len(k.Sample)-1].TS + 1
		pane := pipeline.PaneIndex(end, paneLength)
		x.must(x.begin(slices.Clone(k.Sample), reasonPeriod, &stage.Pane{Index: pane, End: end}))
		newest := sample(batchtest.Rows(108, batchtest.Options{N: newestRows, Sharpness: c.after, Start: end}))
		k.Keep(newest, sampleRows)
		if c.fires {
			k.Alerts = []*stage.Alert{{AlertState: stage.AlertState{State: stage.Firing, Since: end}}}
		}
		in := &stage.Pane{Index: pane + 1, End: end + paneLength, Rows: newest, Labelled: newestRows}
		x.must(x.stepRun(in))
		if got := x.version.Newest() != nil; got != c.want {
			t.Errorf("%s: published %v, want %v", c.name, got, c.want)
		}
		if r := x.run; !c.want && (r == nil || r.best(&x.stage.cfg) < 0) {
			t.Errorf("%s: the candidate has not the evidence that it is held back with: %+v", c.name, r)
		}
	}
}

// TestBeyondDoubt: while the classes come in runs and the next run may lose, evidence for the identity brings no
// rollback until it is the square of what is needed.
func TestBeyondDoubt(t *testing.T) {
	t.Parallel()
	const k = 8
	cfg := testConfig()
	x := newFixture(t, cfg, k)
	x.key.Sample = inRuns(1, sampleRows, k, 500)
	f := inForceAs(t, 0, 6, reasonAlarm)
	x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, f.Cal, f.Encoded, batchtest.Start-second))
	var rows []acc.SampleRow
	for _, row := range inRuns(2, 20_000, k, 500) {
		if row.Y%4 > 0 { // classes that the identity is right about
			rows = append(rows, row)
		}
	}
	doubted, rolled := 0, false
	for i := 0; i+20 <= len(rows) && !rolled; i += 20 {
		need := math.Log(float64(x.monitor.tests()) / cfg.rollbackAlpha())
		b, err := x.monitor.baselines[0], error(nil)
		rolled, err = x.stepMonitor(&stage.Pane{Rows: rows[i : i+20], Labelled: 20, End: rows[i+19].TS + 1})
		x.must(err)
		if e := b.onNLL(); e >= need && !rolled {
			doubted++
		}
		if rolled && b.onNLL() < beyondDoubt*need {
			t.Errorf("rolled back on %.1f nats of evidence, want %.1f", b.onNLL(), beyondDoubt*need)
		}
	}
	if doubted == 0 || !rolled {
		t.Errorf("%d panes with evidence and no outlook, then rolled back %t", doubted, rolled)
	}
}

// TestAccuracyIsTiedByMaps: two baselines that leave each row's class as it is are equally accurate. After a fault for
// which one class was always right, the identity comes back, not the flat temperature of the fault.
func TestAccuracyIsTiedByMaps(t *testing.T) {
	t.Parallel()
	const k = 4
	x := newFixture(t, testConfig(), k)
	hot := inForceAs(t, 0, 20, reasonAlarm)
	x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, hot.Cal, hot.Encoded, batchtest.Start-20*second))
	wrong, e := biased(t, k, 0, 30)
	x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, wrong, e, batchtest.Start-10*second))
	rows := sample(batchtest.Rows(107, batchtest.Options{N: 1000, K: k}))
	rolled, err := x.stepMonitor(&stage.Pane{Rows: rows, Labelled: 1000, End: batchtest.Start + 100*second})
	x.must(err)
	c := x.published(pipeline.StreamCalibrators)
	if last := c[len(c)-1]; !rolled || last.Restores == nil || *last.Restores != 0 {
		t.Errorf("rolled back %t: %+v, want the identity", rolled, last)
	}
}

// TestUnlearns: what came before returns where the rows of a fit turn out to lack the labels of a class, not where such
// labels are missing since then, nor where the sample has forgotten the quick labels of the time of the fit.
func TestUnlearns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, since bool  // whether the labels of class 0 are missing of the rows of the fit, and of later ones
		old           int64 // how long after their first row a calibrator took force before; 0 = none did
		slow          int64 // what labels of wrong rows take, where half of the rows get none; the sample is shorter
		want          bool
	}{
		{"missing", true, true, 0, 0, true},
		{"they come by now", true, false, 0, 0, true},
		{"missing, another before", true, true, -second, 0, true},
		{"missing, another of such rows", true, true, 100 * second, 0, true},
		{"missing since then", false, true, 0, 0, false},
		{"all come", false, false, 0, 0, false},
		{"slow ones outstay quick ones", false, false, 0, 250 * second, false},
	} {
		x := newFixture(t, testConfig(), 4)
		rows := sample(batchtest.Rows(7, batchtest.Options{N: 1200, Step: second}))
		began, took := rows[0].TS, rows[len(rows)/2].TS
		var labelled []acc.SampleRow
		none := map[[16]byte]bool{}
		for i := range rows {
			row := &rows[i]
			if row.LabelTS = row.TS; row.Z[row.Y] < slices.Max(row.Z) {
				row.LabelTS += c.slow
			}
			switch {
			case row.Y == 0 && (row.TS < took && c.before || row.TS >= took && c.since), c.slow > 0 && i%2 == 0:
				none[row.ID] = true
			default:
				labelled = append(labelled, *row)
			}
		}
		slices.SortStableFunc(labelled, func(a, b acc.SampleRow) int { return cmp.Compare(a.LabelTS, b.LabelTS) })
		x.key.Covered = func(from, to int64) (of stage.Coverage, err error) {
			for i := range rows {
				if row := &rows[i]; row.TS >= from && row.TS <= to {
					if of.Predictions++; !none[row.ID] {
						of.Labelled++
					}
				}
			}
			return of, nil
		}
		revision := 0
		if c.old != 0 {
			old := inForceAs(t, 0, .9, reasonAlarm)
			x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, old.Cal, old.Encoded, began+c.old))
		}
		if c.old < 0 {
			revision = 1
		}
		f := inForceAs(t, 0, 2, reasonAlarm)
		x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm,
			Evidence: record.Evidence{FitFrom: record.At(began)}}, f.Cal, f.Encoded, took))
		state, err := x.Append(nil)
		x.must(err)
		back, in := newFixture(t, testConfig(), 4), binenc.NewReader(state)
		if x.must(back.Restore(&in)); back.doubt != x.doubt || x.doubt.from != began {
			t.Errorf("%s: fitted from %d on, restored %d, want %d", c.name, x.doubt.from, back.doubt.from, began)
		}
		rolled := false
		for end := took + paneLength; !rolled && end < took+unlearnFor*(took-began); end += paneLength {
			x.key.Sample = nil
			for _, row := range labelled {
				if row.LabelTS < end && (c.slow == 0 || row.LabelTS >= end-3*c.slow/4) {
					x.key.Sample = append(x.key.Sample, row)
				}
			}
			rolled, err = x.stepMonitor(&stage.Pane{End: end})
			x.must(err)
		}
		d := x.published(pipeline.StreamCalibrators)
		last := d[len(d)-1]
		if why := "no fair sample of the predictions: "; rolled != c.want || rolled && (last.Restores == nil ||
			*last.Restores != revision || last.Reason != record.ReasonLabels || !strings.Contains(last.Outcome, why)) {
			t.Errorf("%s: rolled back %t: %+v", c.name, rolled, last)
		}
		if !rolled {
			continue
		}
		if x.doubt.from != 0 {
			t.Errorf("%s: doubts what came before", c.name)
		}
		if m := x.monitor; m != nil {
			for _, b := range m.baselines {
				if b.revision == last.Replaces {
					t.Errorf("%s: what was taken back may come back", c.name)
				}
			}
		}
		_, err = x.Append(nil)
		x.must(err)
	}
}
