package model

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// linear is a head: z = scale·x with K = D, rotated by turn classes.
type linear struct {
	k, turn int
	scale   float32
}

func (h linear) Features() int { return h.k }
func (h linear) Classes() int  { return h.k }
func (h linear) Logits(z, x []float32) {
	for i := range z {
		z[i] = h.scale * x[(i+h.turn)%h.k]
	}
}

// featureRows returns overconfident rows. Their features are the logits that their labels were drawn from, so a head
// that copies the features is calibrated.
func featureRows(seed uint64, n int) []batchtest.Row {
	rows := batchtest.Rows(seed, batchtest.Options{N: n, MaxLag: 30 * second, Unlabelled: .05, Sharpness: 3})
	for i := range rows {
		for _, z := range rows[i].Scores {
			rows[i].Features = append(rows[i].Features, z/3)
		}
	}
	return rows
}

// shadowSetup has a shadow evaluator and no refits, so that the version that serves keeps its calibrator.
func shadowSetup(heads *shadow.Heads) setup {
	s := defaultSetup()
	s.heads = heads
	s.model.Refit = refit.Config{}
	s.model.Heads = proving.Config{Shadow: true, Alpha: .05, NLLBound: 5, MinRows: 200, MaxRows: 600,
		MaxECERise: .01, MaxAccuracyDrop: .1, MaxAURCRise: .01, Watch: 100 * time.Second}
	s.model.Trigger.ShadowAfter = 20 * time.Second
	return s
}

var mv = arrowio.ModelKey{Model: "m", Version: "v1"}

func (w *world) verdicts() []record.Verdict {
	return worldtest.DecodeAll[record.Verdict](w.T, w.Outputs, pipeline.StreamHeads)
}

func put(t testing.TB, h *shadow.Heads, n int, from int64, model shadow.HeadModel) {
	t.Helper()
	if err := h.Put(mv, n, from, model); err != nil {
		t.Fatal(err)
	}
}

// TestShadowLeavesNoTrace runs a head beside the model with other numbers of shards, batch sizes and orders, and with
// crashes. The hash and outputs are the same, and the counts of rows equal those of a run without a head.
func TestShadowLeavesNoTrace(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := featureRows(11, 1500)
	heads := shadow.NewHeads(proving.Config{Max: 2})
	put(t, heads, 1, batchtest.Start+40*second, linear{4, 0, 1})
	put(t, heads, 2, batchtest.Start+60*second, linear{4, 1, 1})
	s := shadowSetup(heads)
	want := newWorld(t, s, worldtest.Stream(t, rows, 1, 64), 1).run(worldtest.AnyOrder)
	for _, c := range []struct {
		shards, batch int
		order         worldtest.Pick
		crash         float64
	}{{1, 1, worldtest.AnyOrder, 0}, {3, 50, worldtest.LabelsFirst, 0}, {2, 30, worldtest.AnyOrder, .05}} {
		w := newWorld(t, s, worldtest.Stream(t, rows, c.shards, c.batch), uint64(c.shards))
		w.Save, w.Crash = 4*c.crash, c.crash
		w.run(c.order).compare(want)
	}
	plain := s
	plain.heads = nil
	alone := newWorld(t, plain, worldtest.Stream(t, rows, 1, 64), 1).run(worldtest.AnyOrder)
	got := want.Counts()
	if got[shadow.CountShadowRows] == 0 || got[shadow.CountShadowJoined] == 0 {
		t.Errorf("got no shadow rows: %v", got)
	}
	for name, n := range alone.Counts() {
		if got[name] != n {
			t.Errorf("count %s is %d with shadows, %d without", name, got[name], n)
		}
	}
}

// TestShadowRowsAreTheRows: the shadow version has exactly the rows with features from its event time on, with the
// labels and label times of the version that serves.
func TestShadowRowsAreTheRows(t *testing.T) {
	rows := featureRows(12, 600)
	heads := shadow.NewHeads(proving.Config{Max: 1})
	from, until := batchtest.Start+20*second, batchtest.Start+40*second
	put(t, heads, 1, from, linear{4, 0, 1})
	heads.Stop(mv, 1, until)
	s := shadowSetup(heads)
	s.model.Heads.MinRows = 1 << 30
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 40), 3).run(worldtest.AnyOrder)
	var seen, labelled int64
	for _, r := range rows {
		if r.TS >= from && r.TS < until {
			seen++
			if r.Label >= 0 {
				labelled++
			}
		}
	}
	v := w.Model.models["m"].versions["v1+head1"]
	if v == nil {
		t.Fatal("there is no shadow version")
	}
	if got := w.Counts(); got[shadow.CountShadowRows] != seen || got[shadow.CountShadowJoined] != labelled {
		t.Errorf("got %d rows, %d joined; want %d, %d", got[shadow.CountShadowRows], got[shadow.CountShadowJoined],
			seen, labelled)
	}
	k := v.keys[""]
	if k.Labelled != labelled || len(v.keys) != 1 {
		t.Errorf("got %d labelled rows and %d keys, want %d and 1", k.Labelled, len(v.keys), labelled)
	}
	serving := map[[16]byte]bool{}
	for _, r := range w.Model.models["m"].versions["v1"].keys[""].Sample {
		serving[r.ID] = true
	}
	for _, r := range k.Sample {
		if !serving[r.ID] {
			t.Fatal("a sampled row of the shadow is not one of the version that serves")
		}
	}
}

// TestLateShadow: a late shadow begins at the first whole pane that no row has come for.
func TestLateShadow(t *testing.T) {
	rows := featureRows(13, 400)
	heads := shadow.NewHeads(proving.Config{Max: 1})
	s := shadowSetup(heads)
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 10), 1)
	sh := w.Shards[0]
	i := 0
	for ; rows[10*i+9].TS < batchtest.Start+15*second; i++ {
		w.Must(sh.Take(context.Background(), w.In[0][0][i]))
	}
	put(t, heads, 1, batchtest.Start+5*second, linear{4, 0, 1})
	for ; i < len(w.In[0][0]); i++ {
		w.Must(sh.Take(context.Background(), w.In[0][0][i]))
	}
	want := int64(0)
	for _, r := range rows {
		if r.TS >= batchtest.Start+20*second {
			want++
		}
	}
	if got := w.Counts()[shadow.CountShadowRows]; got != want {
		t.Errorf("got %d shadow rows, want %d: those from the next whole pane on", got, want)
	}
}

// TestShadowEvaluator: a better head becomes ready and is watched. A worse head is rejected. An equal head is rejected
// when there were enough rows. A ready head that becomes worse is rolled back.
func TestShadowEvaluator(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for name, c := range map[string]struct {
		head shadow.HeadModel
		want []string
		why  string
	}{
		"better": {linear{4, 0, 1}, []string{record.ShadowReady, record.ShadowReady}, "watched no more"},
		"worse":  {linear{4, 1, 1}, []string{record.ShadowRejected}, "is worse"},
		"same":   {linear{4, 0, 3}, []string{record.ShadowRejected}, "not shown to be better"},
	} {
		t.Run(name, func(t *testing.T) {
			heads := shadow.NewHeads(proving.Config{Max: 1})
			put(t, heads, 1, batchtest.Start+20*second, c.head)
			w := newWorld(t, shadowSetup(heads), worldtest.Stream(t, featureRows(14, 4000), 2, 50),
				2).run(worldtest.AnyOrder)
			vs := w.verdicts()
			var got []string
			for _, v := range vs {
				got = append(got, v.State)
			}
			if !slices.Equal(got, c.want) || !strings.Contains(vs[len(vs)-1].Why, c.why) {
				t.Fatalf("got %v, %+v; want %v", got, vs, c.want)
			}
			v := vs[0]
			if e := v.Evidence; e.Rows < 200 || v.ID != "m/v1+head1" || v.Number != 1 ||
				v.EffectiveFrom.IsZero() != (v.State == record.ShadowReady) ||
				e.NLLGain > 0 != (e.LogEBetter > e.LogEWorse) {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// TestRollback: the features lose their meaning once the head is ready.
func TestRollback(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := featureRows(15, 4000)
	for i := range rows {
		if rows[i].TS >= batchtest.Start+120*second {
			slices.Reverse(rows[i].Features)
		}
	}
	heads := shadow.NewHeads(proving.Config{Max: 1})
	put(t, heads, 1, batchtest.Start, linear{4, 0, 1})
	s := shadowSetup(heads)
	s.model.Heads.Watch = 3600 * time.Second
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 2).run(worldtest.AnyOrder)
	vs := w.verdicts()
	if len(vs) != 2 || vs[0].State != record.ShadowReady || vs[1].State != record.ShadowRolled ||
		vs[1].EffectiveFrom.IsZero() {
		t.Errorf("got %+v, want ready and rolled back", vs)
	}
}

// TestShadowRaisesNoAlarm: a shadow raises no alarm until it is ready.
func TestShadowRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	heads := shadow.NewHeads(proving.Config{Max: 1})
	put(t, heads, 1, batchtest.Start, linear{4, 1, 3})
	s := shadowSetup(heads)
	s.model.Heads.MinRows, s.model.Heads.MaxRows = 1<<30, 1<<31
	w := newWorld(t, s, worldtest.Stream(t, featureRows(16, 3000), 1, 50), 2).run(worldtest.AnyOrder)
	serving := 0
	for _, a := range worldtest.DecodeAll[record.Alert](t, w.Outputs, pipeline.StreamAlerts) {
		if a.Version == "v1+head1" {
			t.Errorf("the shadow raised %+v", a)
		} else {
			serving++
		}
	}
	if serving == 0 {
		t.Error("the version that serves raised no alarm: this test shows nothing")
	}
}
