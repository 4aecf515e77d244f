package finetune_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/finetune"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

const (
	second   = int64(1e9)
	pane     = 10 * second
	paneRows = 100
	certain  = 1.3863 // the logit of 80 %
)

// rig runs the stage for version "v1" of model "m", and its shadow where there is one.
type rig struct {
	t        *testing.T
	cfg      finetune.TriggerConfig
	heads    proving.Config
	model    *finetune.Model
	versions map[string]*stage.Version
	sent     []pipeline.Message
	next     int64 // pane
}

func newRig(t *testing.T, set func(*finetune.TriggerConfig)) *rig {
	r := &rig{t: t, cfg: finetune.TriggerConfig{Enabled: true, Recipe: "auto", Rows: 400, MinRows: 200,
		ReferenceRows: 300, MaxECE: .05, MaxAccuracyDrop: .1, MaxAURCRise: .1, Z: 2, For: 20 * time.Second,
		DataRows: 300, Cooldown: time.Minute, Budget: 3, BudgetPeriod: time.Hour, ShadowAfter: 30 * time.Second,
		Deadline: 2 * time.Minute}}
	if set != nil {
		set(&r.cfg)
	}
	r.heads = proving.Config{Shadow: true, MemoryBytes: 1 << 20, Max: 2, Alpha: .05, NLLBound: 5, MinRows: 200,
		MaxRows: 1000, MaxECERise: .05, MaxAccuracyDrop: .1, MaxAURCRise: .1, Watch: time.Hour}
	r.build("v1")
	return r
}

// build makes a stage without a state.
func (r *rig) build(versions ...string) {
	log := slog.New(slog.DiscardHandler)
	env := &stage.Env{Pane: pane, Bins: 15, Resamples: 20, Counts: pipeline.NewCounts(), Log: log,
		Acc:  acc.Config{Bins: 15, SoftBins: 15, SoftTemperature: .01, SampleRows: 1024, SampleBytes: 1 << 18},
		Emit: func(_ *stage.Key, m pipeline.Message) { r.sent = append(r.sent, m) }}
	keys := map[*stage.Version]*stage.Key{}
	env.Whole = func(v *stage.Version) *stage.Key {
		if keys[v] == nil {
			keys[v] = &stage.Key{Version: v}
		}
		return keys[v]
	}
	r.model, r.versions = finetune.New(env, r.cfg, r.heads).NewModel(), map[string]*stage.Version{}
	for _, name := range versions {
		r.add(name)
	}
}

func (r *rig) add(name string) {
	r.versions[name] = &stage.Version{Model: "m", Name: name, K: 2}
	r.model.Add(r.versions[name])
}

// rows are those of a pane: two classes at 80 % confidence, with so many right of a hundred.
func rows(pane int64, right int) []acc.SampleRow {
	out := make([]acc.SampleRow, paneRows)
	for i := range out {
		row := acc.SampleRow{ID: [16]byte{byte(pane), byte(pane >> 8), byte(i), 1}, W: 1, Y: int32(i % 2)}
		row.TS = pane*10*second + int64(i)*second/100
		row.LabelTS = row.TS
		row.Z = []float32{0, 0}
		if i*37%paneRows < right {
			row.Z[row.Y] = certain
		} else {
			row.Z[1-row.Y] = certain
		}
		out[i] = row
	}
	return out
}

// feed runs so many panes of v1.
func (r *rig) feed(panes, right int) {
	r.t.Helper()
	for range panes {
		r.close(map[string]int{"v1": right})
	}
}

// close runs one pane in which versions have so many right rows.
func (r *rig) close(right map[string]int) {
	r.t.Helper()
	for name, n := range right {
		r.model.Observe(r.versions[name], &stage.Pane{Index: r.next, End: (r.next + 1) * pane, Rows: rows(r.next, n)})
	}
	if err := r.model.Close(r.next); err != nil {
		r.t.Fatal(err)
	}
	r.next++
}

func (r *rig) requests() (out []record.Finetune) {
	for _, m := range r.sent {
		if m.Stream == pipeline.StreamFinetune {
			var f record.Finetune
			if err := json.Unmarshal(m.Value, &f); err != nil {
				r.t.Fatal(err)
			}
			out = append(out, f)
		}
	}
	return out
}

func (r *rig) state() []byte {
	r.t.Helper()
	b, err := r.model.Append(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) restore(b []byte) error {
	in := binenc.NewReader(b)
	return r.model.Restore(&in)
}

// TestWhenAHeadIsRequested: how many requests a stream of panes leads to, with the reason of the first.
func TestWhenAHeadIsRequested(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(*finetune.TriggerConfig)
		right  []int // of each ten panes
		want   int
		reason string
	}{
		{"accuracy stays", nil, []int{80, 80, 80}, 0, ""},
		{"accuracy falls", nil, []int{80, 50}, 1, "accuracy"},
		{"it falls by less than the bound", nil, []int{80, 73}, 0, ""},
		{"it falls and comes back before its time", func(c *finetune.TriggerConfig) { c.For = 10 * time.Minute },
			[]int{80, 50, 80}, 0, ""},
		{"too few rows to train on", func(c *finetune.TriggerConfig) { c.DataRows = 5000 }, []int{80, 50}, 0, ""},
		{"off", func(c *finetune.TriggerConfig) { c.Enabled = false }, []int{80, 50}, 0, ""},
		{"once more after each deadline", nil, []int{80, 50, 50, 50}, 3, "accuracy"},
		{"a longer cool-down", func(c *finetune.TriggerConfig) { c.Cooldown = time.Hour }, []int{80, 50, 50, 50}, 1,
			"accuracy"},
		{"a budget of one", func(c *finetune.TriggerConfig) { c.Budget = 1 }, []int{80, 50, 50, 50}, 1, "accuracy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.set)
			for _, right := range c.right {
				r.feed(10, right)
			}
			got := r.requests()
			if len(got) != c.want {
				t.Fatalf("%d requests, want %d: %+v", len(got), c.want, got)
			}
			if len(got) > 0 && got[0].Reason != c.reason {
				t.Errorf("reason %q, want %q", got[0].Reason, c.reason)
			}
		})
	}
}

// TestRequest: what a request says of itself.
func TestRequest(t *testing.T) {
	r := newRig(t, nil)
	r.feed(10, 80)
	r.feed(10, 50)
	got := r.requests()
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1", len(got))
	}
	f := got[0]
	if f.ID != "m/v1+head1" || f.ShadowVersion != "v1+head1" || f.Number != 1 || f.Recipe != "auto" || f.Classes != 2 {
		t.Errorf("it names %+v", f)
	}
	if e := f.Evidence; e.ReferenceRows < 300 || e.Rows < 200 || e.ReferenceAccuracy != .8 || !(e.Accuracy < .7) {
		t.Errorf("evidence %+v", e)
	}
	if f.Data.Rows < 300 || f.Seed>>53 != 0 {
		t.Errorf("data %+v, seed %d; want 300 rows and 53 bits", f.Data, f.Seed)
	}
}

// TestStateGoesOn: a stage restored at any pane requests what the other requests, and has the same bytes.
func TestStateGoesOn(t *testing.T) {
	whole := newRig(t, nil)
	again := newRig(t, nil)
	for i := range 40 {
		right := 80
		if i >= 10 {
			right = 50
		}
		whole.feed(1, right)
		again.feed(1, right)
		b := again.state()
		again.build("v1")
		if err := again.restore(b); err != nil {
			t.Fatalf("pane %d: %v", i, err)
		}
		if !bytes.Equal(again.state(), b) || !bytes.Equal(whole.state(), b) {
			t.Fatalf("pane %d: other bytes after a restore", i)
		}
	}
	got, want := again.requests(), whole.requests()
	if len(want) == 0 || len(got) != len(want) {
		t.Errorf("%d requests with restores, %d without", len(got), len(want))
	}
}

// TestRestoreRefuses: a checkpoint with a version that the task has not, and any part of one.
func TestRestoreRefuses(t *testing.T) {
	r := newRig(t, nil)
	r.feed(20, 80)
	b := r.state()
	r.build("v2")
	if err := r.restore(b); err == nil {
		t.Error("a version that is not there is restored")
	}
	for n := range len(b) {
		r.build("v1")
		if err := r.restore(b[:n]); err == nil {
			t.Fatalf("%d of %d bytes are restored", n, len(b))
		}
	}
}

// TestShadowing: a head is a shadow until its evaluator says ready, and a version that nobody asked for never is.
func TestShadowing(t *testing.T) {
	r := newRig(t, nil)
	r.add("v1+head1")
	if r.model.Shadowing("v1") {
		t.Error("the serving version counts as a shadow")
	}
	if !r.model.Shadowing("v1+head1") {
		t.Error("a head counts as ready before it has rows")
	}
	for range 20 {
		r.close(map[string]int{"v1": 60, "v1+head1": 90})
	}
	if !hasVerdict(t, r.sent, record.ShadowReady) || r.model.Shadowing("v1+head1") {
		t.Error("a head that is right more often did not become ready")
	}
	for range 40 {
		r.close(map[string]int{"v1": 90, "v1+head1": 30})
	}
	if !hasVerdict(t, r.sent, record.ShadowRolled) {
		t.Error("a ready head that turns worse was not rolled back")
	}
}

func hasVerdict(t *testing.T, sent []pipeline.Message, state string) bool {
	for _, m := range sent {
		if m.Stream == pipeline.StreamHeads {
			var v record.Verdict
			if err := json.Unmarshal(m.Value, &v); err != nil {
				t.Fatal(err)
			}
			if v.State == state {
				return true
			}
		}
	}
	return false
}
