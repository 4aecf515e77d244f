package model

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/finetune"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// wornRows returns rows of which some have random labels from one row on. Accuracy falls, and no calibrator can restore
// it.
func wornRows(seed uint64, n, from int, share float64) []batchtest.Row {
	rows := batchtest.Rows(seed, batchtest.Options{N: n, MaxLag: 20 * second, Sharpness: 1})
	r := rand.New(rand.NewPCG(seed, 9))
	for i := from; i < n; i++ {
		if r.Float64() < share {
			rows[i].Label = int32(r.IntN(len(rows[i].Scores)))
		}
	}
	return rows
}

func triggerSetup() setup {
	s := defaultSetup()
	s.model.Trigger = finetune.TriggerConfig{Enabled: true, Recipe: "auto", Rows: 400, MinRows: 200, ReferenceRows: 800,
		MaxECE: .05, MaxAccuracyDrop: .08, MaxAURCRise: .1, Z: 3,
		For: 20 * time.Second, DataRows: 600, Cooldown: 100 * time.Second, Budget: 2, BudgetPeriod: 1000 * time.Second,
		ShadowAfter: 30 * time.Second, Deadline: 60 * time.Second}
	s.model.Heads = proving.Config{Shadow: true, Alpha: .05, NLLBound: 5, MinRows: 200, MaxRows: 600,
		MaxECERise: .01, MaxAccuracyDrop: .1, MaxAURCRise: .01, Watch: 100 * time.Second}
	return s
}

func (w *world) requests() []record.Finetune {
	return worldtest.DecodeAll[record.Finetune](w.T, w.Outputs, pipeline.StreamFinetune)
}

// TestTriggerOnAccuracy: a request comes after the fall and not before, with its figures. Another comes after the
// deadline and the cool-down, and no more than the budget allows. Splits, orders and crashes leave no trace.
func TestTriggerOnAccuracy(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const fall = 1500 // 150 s
	rows := wornRows(21, 6000, fall, .5)
	s := triggerSetup()
	want := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	reqs := want.requests()
	if len(reqs) != 2 {
		t.Fatalf("got %d requests, want the two of the budget: %+v", len(reqs), reqs)
	}
	r := reqs[0]
	if after := r.DecidedAt.UnixNano() - batchtest.Start - 150*second; after < 20*second || after > 150*second {
		t.Errorf("asked %d s after the fall", after/second)
	}
	e := r.Evidence
	if r.Reason != "accuracy" || r.ID != "m/v1+head1" || r.Number != 1 || r.Recipe != "auto" || r.Classes != 4 ||
		e.Rows < 400 || e.ReferenceRows < 800 ||
		e.ReferenceAccuracy-e.Accuracy < .08 || r.Data.Rows < 600 || r.Seed == 0 || r.Seed >= 1<<53 ||
		!strings.Contains(r.Why, "accuracy") {
		t.Errorf("got %+v", r)
	}
	times := []record.Time{r.Data.From, e.Since, r.DecidedAt, r.ShadowFrom, r.Deadline}
	for i := range times[1:] {
		if !times[i+1].After(times[i]) {
			t.Errorf("times are not in order: %v", times)
		}
	}
	if r.Data.To != r.DecidedAt {
		t.Errorf("data to %s, decided at %s", r.Data.To, r.DecidedAt)
	}
	if vs := want.verdicts(); len(vs) == 0 || vs[0].State != record.ShadowLost || vs[0].ID != r.ID {
		t.Errorf("got verdicts %+v, want the first head lost at its deadline", vs)
	}
	later := reqs[1].DecidedAt.UnixNano() - r.DecidedAt.UnixNano()
	if later < 100*second || reqs[1].Seed == r.Seed || reqs[1].ID != "m/v1+head2" {
		t.Errorf("the second request, %v after the first: %+v", time.Duration(later), reqs[1])
	}
	newWorld(t, s, worldtest.Stream(t, rows, 3, 20), 5).run(worldtest.LabelsFirst).compare(want)
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 6)
	w.Save, w.Crash = .1, .02
	w.run(worldtest.AnyOrder).compare(want)
}

// TestTriggerIsQuiet: there is no request if nothing has changed, or if recalibration has mended the change.
func TestTriggerIsQuiet(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3} {
		for name, rows := range map[string][]batchtest.Row{
			"calm":          batchtest.Rows(seed, batchtest.Options{N: 4000, MaxLag: 20 * second}),
			"overconfident": batchtest.Rows(seed, batchtest.Options{N: 4000, MaxLag: 20 * second, Sharpness: 2}),
		} {
			w := newWorld(t, triggerSetup(), worldtest.Stream(t, rows, 1, 100), 1).run(worldtest.AnyOrder)
			if reqs := w.requests(); len(reqs) > 0 {
				t.Errorf("%s, seed %d: asked: %+v", name, seed, reqs[0])
			}
		}
	}
}

// TestTriggerOnECE: no temperature mends the confidences, and accuracy stays.
func TestTriggerOnECE(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(22, batchtest.Options{N: 5000, MaxLag: 20 * second, Sharpness: 1})
	for i := 1500; i < len(rows); i++ {
		// Half of the rows become sure and the others unsure. The mean is right, and every bin is wrong.
		f := float32(6)
		if i%2 == 0 {
			f = .15
		}
		for k := range rows[i].Scores {
			rows[i].Scores[k] *= f
		}
	}
	s := triggerSetup()
	s.model.Trigger.MaxAURCRise = 1
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	reqs := w.requests()
	if len(reqs) == 0 || reqs[0].Reason != "ece" || len(reqs[0].Evidence.Refit) < 10 {
		t.Errorf("got %+v, want a request because of the ECE after a refit", reqs)
	}
}

// TestTriggerOff: without the trigger there is no state, so checkpoints and hashes equal those of runs without it.
func TestTriggerOff(t *testing.T) {
	rows := wornRows(23, 2000, 1000, .5)
	s := triggerSetup()
	s.model.Trigger, s.model.Heads = finetune.TriggerConfig{}, proving.Config{}
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	b, err := w.Model.models["m"].heads.Append(nil)
	if err != nil || len(b) != 1 {
		t.Errorf("got %d bytes of state, %v; want a count of 0", len(b), err)
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("got %d requests", n)
	}
}
