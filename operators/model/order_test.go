package model

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// withOrders inserts orders into a panes log. The key of an order is the share of the log before it.
func withOrders(panes []pipeline.Record, orders map[float64]*pipeline.Order) (out []pipeline.Record) {
	for i, r := range panes {
		for at, o := range orders {
			if i == int(at*float64(len(panes))) {
				out = append(out, pipeline.Record{Input: pipeline.Panes, Topic: "panes",
					Value: pipeline.AppendOrder(nil, o)})
			}
		}
		out = append(out, r)
	}
	for i := range out {
		out[i].Offset = int64(i)
	}
	return out
}

// TestOrders pins, publishes, rolls back and unpins in a stream whose refits would publish. It reads the same log again
// with fits that end late and with restarts, and must find the same decisions.
func TestOrders(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(101, batchtest.Options{N: 6000, MaxLag: 5 * second, Sharpness: 2.5})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Windows = s.model.Windows[:1]
	panes := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).Log(worldtest.AnyOrder)
	order := func(n byte, action, version string, body []byte) *pipeline.Order {
		return &pipeline.Order{ID: [16]byte{n}, Action: action, Model: "m", Version: version, Calibrator: body,
			By: "ann", Why: "test " + action}
	}
	flatter := batchtest.Temperature(t, 1.7)
	orders := map[float64]*pipeline.Order{
		.05: order(1, pipeline.ActionPin, "", nil),
		.3:  order(2, pipeline.ActionPublish, "v1", flatter),
		.35: order(2, pipeline.ActionPublish, "v1", flatter),
		.45: order(3, pipeline.ActionRollback, "v1", nil),
		.5:  order(4, pipeline.ActionPublish, "v2", batchtest.Temperature(t, 2)),
		.55: order(5, pipeline.ActionUnpin, "v1", nil),
		.98: order(6, pipeline.ActionPin, "v1", nil),
	}
	log := withOrders(panes, orders)
	w := newWorld(t, s, nil, 1)
	w.Panes = log
	w.Finish()
	all := append(worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamDecisions),
		worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)...)
	var manual, published []record.Calibrator
	for _, m := range w.Outputs {
		if m.Stream != pipeline.StreamCalibrators && m.Stream != pipeline.StreamDecisions {
			continue
		}
		d := worldtest.DecodeAll[record.Calibrator](t, []pipeline.Message{m}, m.Stream)[0]
		if d.Reason == "manual" {
			manual = append(manual, d)
		} else if d.Published {
			published = append(published, d)
		}
	}
	want := []struct {
		state, outcome string
		order          byte
		pinned         bool
		revision       int
		published      bool
	}{
		{record.DecidedPinned, "pin by ann", 1, true, 0, false},
		{record.DecidedPublished, "published: publish by ann", 2, true, 1, true},
		{record.DecidedRolledBack, "published: rollback by ann", 3, true, 2, true},
		{record.DecidedRefused, "refused: publish by ann: the model has no such version", 4, false, 0, false},
		{record.DecidedUnpinned, "unpin by ann", 5, false, 2, true},
		{record.DecidedPinned, "pin by ann", 6, true, 3, true},
	}
	if len(manual) != len(want) {
		t.Fatalf("%d manual decisions, want %d: %+v", len(manual), len(want), all)
	}
	for i, d := range manual {
		id := [16]byte{want[i].order}
		if g := want[i]; d.State != g.state || d.Order != hex.EncodeToString(id[:]) || d.Outcome != g.outcome ||
			d.Pinned != g.pinned || d.Revision != g.revision || d.Published != g.published || d.By != "ann" ||
			!strings.HasPrefix(d.Why, "test ") {
			t.Errorf("decision %d is %+v, want %+v by ann", i, d, g)
		}
	}
	if string(manual[1].Calibrator) != string(flatter) ||
		!strings.Contains(string(manual[2].Calibrator), "identity") {
		t.Errorf("published %s and %s, want T = 1.7 and then what was before, the identity", manual[1].Calibrator,
			manual[2].Calibrator)
	}
	if len(published) != 1 || published[0].DecidedAt.UnixNano() < manual[4].DecidedAt.UnixNano() {
		t.Errorf("refits published %d, want one after the end of the pin", len(published))
	}
	if n := w.Model.counts.All(); n[refit.CountOrders] != 5 || n[refit.CountBadOrders] != 1 {
		t.Errorf("counts %v, want 5 orders obeyed and 1 for a version that is not there", n)
	}
	for seed := range uint64(3) {
		again := newWorld(t, s, nil, seed)
		again.Panes = log
		for int(max(again.Model.next, 0)) < len(log) {
			again.ReadPanes(1 + again.Rand.IntN(20))
			again.Hold(again.Rand.IntN(2) == 0)
			if again.SaveModel(); again.Rand.IntN(2) == 0 {
				again.Model = again.setup.task()
				again.Must(pipeline.RestoreCheckpoint(again.SavedModel, again.Model.Sections(), nil))
			}
		}
		again.Finish()
		if g, w := again.Hash(), w.Hash(); g != w {
			t.Errorf("seed %d: state hash %s, want %s", seed, g, w)
		}
		worldtest.CompareOutputs(t, worldtest.Firsts(again.Outputs), worldtest.Firsts(w.Outputs))
	}
}

// TestOrderForAnotherKIsRefused: an unusable order publishes nothing, and nothing panics.
func TestOrderForAnotherKIsRefused(t *testing.T) {
	rows := batchtest.Rows(102, batchtest.Options{N: 300, MaxLag: second})
	s := defaultSetup()
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	vector, _, err := calibrator.Fit("vector", calibrator.NewData([]float32{1, 2, 3, 3, 2, 1, 1, 3, 2}, 3,
		[]int32{0, 1, 2}, nil),
		calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := calibrator.Encode(vector)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range []pipeline.Order{{Action: pipeline.ActionPublish, Calibrator: body},
		{Action: pipeline.ActionPublish, Calibrator: []byte("{}")}, {Action: pipeline.ActionRollback},
		{Action: pipeline.ActionPin, Revision: 7}} {
		o.ID, o.Model = [16]byte{byte(i + 1)}, "m"
		w.Must(w.Model.take(pipeline.AppendOrder(nil, &o)))
	}
	if n := w.Model.counts.All(); n[refit.CountBadOrders] != 4 || n[refit.CountOrders] != 0 {
		t.Errorf("counts %v, want 4 orders refused", n)
	}
	if c := worldtest.DecodeAll[record.Calibrator](t, w.Model.Outputs(), pipeline.StreamCalibrators); len(c) != 0 {
		t.Errorf("published %+v", c)
	}
}

// TestCanary gives the candidate to a share of the ids first. The records say so, the same rows get it in the model
// task and in the shards, and after its time it is in force for all.
func TestCanary(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(103, batchtest.Options{N: 5000, MaxLag: 5 * second, Sharpness: 2.5})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Refit.CanaryShare, s.model.Refit.CanaryFor, s.model.Refit.ShadowFor = .25, 60*time.Second, 40*time.Second
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1)
	w.Slow = .5
	w.run(worldtest.AnyOrder)
	var stages []string
	published := apply.NewPublished(0)
	m := arrowio.ModelKey{Model: "m", Version: "v1"}
	var first [2]record.Calibrator // canary, full
	for _, c := range worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators) {
		stages = append(stages, c.Stage)
		if c.Stage == record.StageCanary && len(stages) == 1 {
			first[0] = c
		}
		if c.Stage == record.StageFull && first[1].Stage == "" {
			first[1] = c
		}
		if c.Stage == record.StageCanary && c.Published {
			t.Errorf("a canary counts as published: %+v", c)
		}
		p := apply.Publication{Revision: c.Revision, From: c.EffectiveFrom.UnixNano(), Encoded: c.Calibrator,
			Canary: c.Stage == record.StageCanary, Share: c.Share}
		if p.Canary && p.Share == 0 {
			p.Encoded = nil
		}
		w.Must(published.Put(m, p))
	}
	if len(stages) < 3 || strings.Join(stages[:3], " ") != "canary full canary" || first[0].Share != .25 {
		t.Fatalf("stages %q, share %v; want a canary of .25, full, the canary's end", stages, first[0].Share)
	}
	from, full := first[0].EffectiveFrom.UnixNano(), first[1].EffectiveFrom.UnixNano()
	if full-from < 60*second || string(first[0].Calibrator) != string(first[1].Calibrator) {
		t.Errorf("canary from %s, full from %s with %s; want a minute in between, the same calibrator",
			first[0].EffectiveFrom, first[1].EffectiveFrom, first[1].Calibrator)
	}
	v := w.Model.models["m"].versions["v1"]
	if v.Calibrators[0].Share == 0 {
		t.Fatalf("calibrators %+v: want the canary first", v.Calibrators)
	}
	in, n := 0, 0
	for _, ts := range []int64{from - 1, from, full - 1, full} {
		for i := range 4000 {
			id := arrowio.HashIntID(uint64(i))
			a, b := v.At(ts, id), published.Now(m).At(ts, 4, id)
			if (a == nil) != (b == nil) || a != nil && a.Share != b.Share {
				t.Fatalf("row %d at %d: %+v in the model task, %+v in the shards", i, ts, a, b)
			}
			if got, want := a != nil, ts >= full || ts >= from && arrowio.InShare(id, .25); got != want {
				t.Fatalf("row %d at %d: calibrated %v, want %v", i, ts, got, want)
			}
			if n++; arrowio.InShare(id, .25) {
				in++
			}
			if arrowio.InShare(id, .1) && !arrowio.InShare(id, .25) {
				t.Fatal("a larger share does not hold the smaller one")
			}
		}
	}
	if share := float64(in) / float64(n); share < .22 || share > .28 {
		t.Errorf("share %.3f of the ids, want .25", share)
	}
	crashed := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 7)
	crashed.Save, crashed.Crash, crashed.Slow = .05, .01, .5
	crashed.run(worldtest.AnyOrder).compare(w)
}

// TestRollbackOfWorseCalibrator: a calibrator that becomes wrong is rolled back once, as a new revision with evidence.
// One that stays right is not.
func TestRollbackOfWorseCalibrator(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(104, batchtest.Options{N: 2000, MaxLag: 5 * second, Sharpness: 2.5})
	s := defaultSetup()
	s.model.Rules, s.model.Refit.OnAlarm = nil, false
	s.model.Refit.Period = 150 * time.Second // one refit before the change, and none after it
	shift := rows[len(rows)-1].TS + second
	calm := append(append([]batchtest.Row(nil), rows...),
		batchtest.Rows(105, batchtest.Options{N: 3000, MaxLag: 5 * second, Sharpness: 2.5, Start: shift})...)
	s.model.Refit.MinRows = 1400
	for _, c := range []struct {
		rows []batchtest.Row
		want int
	}{{calm, 0}, {append(rows, batchtest.Rows(105, batchtest.Options{N: 1000, MaxLag: 5 * second, Start: shift})...),
		1}} {
		w := newWorld(t, s, worldtest.Stream(t, c.rows, 2, 50), 1)
		w.Slow = .5
		w.run(worldtest.AnyOrder)
		var back []record.Calibrator
		all := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
		for _, d := range all {
			if d.Reason == "rollback" {
				back = append(back, d)
			}
		}
		if len(all) == 0 || len(back) != c.want {
			t.Fatalf("%d publications, %d rollbacks; want some, %d", len(all), len(back), c.want)
		}
		for _, d := range back {
			e := d.Evidence
			proved := e.LogENeeded > 0 && e.LogE >= e.LogENeeded ||
				strings.Contains(d.Outcome, "above that of the raw scores")
			if !d.Published || d.Restores == nil || *d.Restores != 0 || d.Revision != d.Replaces+1 || e.NLLDiff >= 0 ||
				!proved || e.TestRows < 100 || d.DecidedAt.UnixNano() < shift {
				t.Errorf("rollback %+v: want the identity again after the change, with its evidence", d)
			}
		}
		crashed := newWorld(t, s, worldtest.Stream(t, c.rows, 2, 50), 7)
		crashed.Save, crashed.Crash, crashed.Slow = .05, .01, .5
		crashed.run(worldtest.AnyOrder).compare(w)
	}
}
