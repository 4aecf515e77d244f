package join

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

// joinRun drives a Join by a script of one step a line:
//
//	p ID TS [model/version] [k=K]       a prediction
//	i ID TS LABEL [model/version]       a prediction with its label
//	l ID TS LABEL [model/version]       a label; names no model where absent
//	w TS                                the watermark
//
// and collects "id label@labelTS-ts model/version" of every joined row. Times are in seconds.
type joinRun struct {
	t      *testing.T
	j      *Operator
	counts *pipeline.Counts
	out    *pipeline.Out
	joined []string
}

func newJoinRun(t *testing.T, c Options) *joinRun {
	return newLoggedRun(t, c, quiet)
}

func newLoggedRun(t *testing.T, c Options, log *slog.Logger) *joinRun {
	h := host(pipeline.NewCounts())
	h.Log = log
	return &joinRun{t: t, j: New(c, h), counts: h.Counts, out: h.Out}
}

func (r *joinRun) emit(b *arrowio.Batch) (pipeline.Rejects, error) {
	for i := 0; b.Kind == arrowio.Labelled && i < b.N; i++ {
		r.joined = append(r.joined, fmt.Sprintf("%s %d@%d-%d %s/%s", strings.TrimRight(string(b.IDs[i][:]), "\x00"),
			b.Label[i], b.LabelTS[i], b.TS[i], b.Models[0].Model, b.Models[0].Version))
	}
	return b.Reject, nil
}

func (r *joinRun) do(script string) *joinRun {
	r.t.Helper()
	for line := range strings.SplitSeq(script, ";") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var err error
		if f[0] == "w" {
			err = r.j.Advance(context.Background(), number64(f[1]), r.emit)
		} else {
			_, err = r.j.Process(context.Background(), scriptBatch(f), r.emit)
			r.out.End()
		}
		if err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
	}
	return r
}

func number64(s string) (n int64) {
	if _, err := fmt.Sscan(s, &n); err != nil {
		panic(err)
	}
	return n
}

func scriptBatch(f []string) *arrowio.Batch {
	b := &arrowio.Batch{N: 1, IDs: make([]arrowio.ID, 1), TS: []int64{number64(f[2])}, Models: []arrowio.ModelKey{{}}}
	copy(b.IDs[0][:], f[1])
	rest := f[3:]
	b.K = 3
	if f[0] == "l" {
		b.Kind, b.Label, rest, b.K = arrowio.Labels, []int32{int32(number64(f[3]))}, f[4:], 0
	} else {
		b.Models[0] = arrowio.ModelKey{Model: "m", Version: "1"}
	}
	if f[0] == "i" { // a prediction with its label
		b.Label, rest = []int32{int32(number64(f[3]))}, f[4:]
	}
	for _, x := range rest {
		if k, ok := strings.CutPrefix(x, "k="); ok {
			b.K = int(number64(k))
			continue
		}
		m, v, _ := strings.Cut(x, "/")
		b.Models[0] = arrowio.ModelKey{Model: m, Version: v}
	}
	b.Scores = make([]float32, b.K)
	return b
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		name, script string
		joined       string
		counts       string
	}{
		{"label after", "p a 1; l a 5 2", "a 2@5-1 m/1", "joined=1 labels=1 predictions=1"},
		{"label before", "l a 5 2; p a 1", "a 2@5-1 m/1", "joined=1 labels=1 predictions=1"},
		{"label older than the prediction", "p a 9; l a 5 2", "a 2@5-9 m/1", "joined=1 labels=1 predictions=1"},
		{"other id", "p a 1; l b 5 2", "", "labels=1 predictions=1"},
		{"at the wait", "p a 1; l a 11 2", "a 2@11-1 m/1", "joined=1 labels=1 predictions=1"},
		{"past the wait", "p a 1; l a 12 2", "", "labels=1 predictions=1"},
		{"past the wait, label first", "l a 12 2; p a 1", "", "labels=1 predictions=1"},
		{"first label wins", "p a 1; l a 5 2; l a 6 0", "a 2@5-1 m/1", "joined=1 labels=2 predictions=1"},
		{"first label wins, labels first", "l a 5 2; l a 6 0; p a 1", "a 2@5-1 m/1", "joined=1 labels=2 predictions=1"},
		{"first label in time wins, labels first", "l a 50 2; l a 6 0; p a 1", "a 0@6-1 m/1",
			"joined=1 labels=2 predictions=1"},
		{"same id twice", "p a 1; p a 2; l a 5 1", "a 1@5-1 m/1", "duplicates=1 joined=1 labels=1 predictions=1"},
		{"two versions, label names none", "p a 1 m/1; p a 2 m/2; l a 5 1", "a 1@5-1 m/1,a 1@5-2 m/2",
			"joined=2 labels=1 predictions=2"},
		{"two versions, label names none and is first", "l a 5 1; p a 1 m/1; p a 2 m/2", "a 1@5-1 m/1,a 1@5-2 m/2",
			"joined=2 labels=1 predictions=2"},
		{"two versions, label names the model", "p a 1 m/1; p a 2 m/2; p a 2 n/2; l a 5 1 m/",
			"a 1@5-1 m/1,a 1@5-2 m/2", "joined=2 labels=1 predictions=3"},
		{"label names one version", "p a 1 m/1; p a 2 m/2; l a 5 1 m/2", "a 1@5-2 m/2",
			"joined=1 labels=1 predictions=2"},
		{"label names one version and is first", "l a 5 1 m/2; p a 1 m/1; p a 2 m/2", "a 1@5-2 m/2",
			"joined=1 labels=1 predictions=2"},
		{"label names another model", "p a 1 m/1; l a 5 1 n/1", "", "labels=1 predictions=1"},
		{"label out of range", "p a 1; l a 5 3", "",
			"dead_letters:label_range=1 labels=1 predictions=1 rejected:label_range=1"},
		{"label out of range, then a good one", "p a 1; l a 5 3; l a 6 1", "a 1@6-1 m/1",
			"dead_letters:label_range=1 joined=1 labels=2 predictions=1 rejected:label_range=1"},
		{"label out of range, then a good one, labels first", "l a 5 3; l a 6 1; p a 1", "a 1@6-1 m/1",
			"dead_letters:label_range=1 joined=1 labels=2 predictions=1 rejected:label_range=1"},
		{"in range of one version only", "p a 1 m/1 k=2; p a 1 m/2 k=5; l a 5 3", "a 3@5-1 m/2",
			"dead_letters:label_range=1 joined=1 labels=1 predictions=2 rejected:label_range=1"},
		{"expired", "p a 1; w 11; w 12; l a 11 2", "", "expired=1 labels=1 predictions=1"},
		{"not yet expired", "p a 1; w 11; l a 11 2", "a 2@11-1 m/1", "joined=1 labels=1 predictions=1"},
		{"orphan", "l a 1 1; w 12; p a 3", "", "labels=1 orphans=1 predictions=1"},
		{"a label that served is no orphan", "l a 1 1; p a 3; w 12", "a 1@1-3 m/1", "joined=1 labels=1 predictions=1"},
		{"full: the oldest goes", "p a 1; p b 1; p c 1; p d 1; l a 2 1; l d 2 1", "d 1@2-1 m/1",
			"evicted=2 joined=1 labels=2 predictions=4"},
		{"full of labels", "l a 2 1; l b 2 1; l c 2 1; l d 2 1; p a 1; p d 1", "d 1@2-1 m/1",
			"evicted=2 joined=1 labels=4 predictions=2"},
		{"a label that served is no loss when pushed out", "l a 2 1; p a 1; p b 1; p c 1; p d 1", "a 1@2-1 m/1",
			"joined=1 labels=1 predictions=4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newJoinRun(t, Options{Config: Config{Wait: 10, MaxRows: 3}}).do(c.script)
			slices.Sort(r.joined)
			if got := strings.Join(r.joined, ","); got != c.joined {
				t.Errorf("joined %q, want %q", got, c.joined)
			}
			if ok, detail := r.conserves(); !ok {
				t.Error(detail)
			}
			if got := countText(r.counts.All()); got != c.counts {
				t.Errorf("counts %q, want %q", got, c.counts)
			}
		})
	}
}

func countText(n map[string]int64) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		if n[k] != 0 && !slices.Contains([]string{pipeline.CountMet, pipeline.CountWaiting,
			pipeline.CountWaitingLabels, pipeline.CountRejectedJoins, pipeline.CountEvictedLabels}, k) {
			out = append(out, fmt.Sprintf("%s=%d", k, n[k]))
		}
	}
	return strings.Join(out, " ")
}

// TestJoinConserves runs random scripts over a small buffer: every prediction is joined, waiting, expired or evicted,
// every label used, waiting, orphaned or evicted, and the state survives its encoding at any point.
func TestJoinConserves(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		run := newJoinRun(t, Options{Config: Config{Wait: 10, MaxRows: 1 + r.IntN(12)}, Slices: []string{"region"}})
		for i := range 300 {
			id, ts := string('a'+rune(r.IntN(20))), i/4+r.IntN(8)
			switch r.IntN(9) {
			case 0:
				run.do(fmt.Sprintf("w %d", i/4-2))
			case 1, 2, 3:
				run.do(fmt.Sprintf("l %s %d %d m/%d", id, ts, r.IntN(3), 1+r.IntN(2)))
			default:
				run.do(fmt.Sprintf("p %s %d m/%d", id, ts, 1+r.IntN(2)))
			}
			if i%10 == 0 {
				run.reopen()
			}
		}
		n, w := run.counts.All(), run.j.w.n
		if int64(w.predictions) != n[pipeline.CountWaiting] || int64(w.labels) != n[pipeline.CountWaitingLabels] ||
			w.bounded() > run.j.cfg.MaxRows {
			t.Fatalf("seed %d: %+v wait, the counts say %v, allowed are %d", seed, w, n, run.j.cfg.MaxRows)
		}
		if ok, detail := run.conserves(); !ok || int64(len(run.joined)) != n["joined"] || n["joined"] == 0 {
			t.Errorf("seed %d: %s; %v", seed, detail, n)
		}
	}
}

// conserves checks the counts; validator and statistics, which count a part of them, are not there.
func (r *joinRun) conserves() (bool, string) {
	n := r.counts.All()
	n["rows"] = n["predictions"] + n["labels"] + n["duplicates"]
	n["rejected:elsewhere"] = n[pipeline.CountRejectedJoins] - n["rejected:"+arrowio.LabelRange]
	n["labelled"] = n["joined"] + n["inline"]
	rows, detail := pipeline.Unaccounted(n)
	return rows == 0, detail
}

// TestNamesAreForgotten sends slice values and versions without number: what is kept is bounded by what waits, and
// the rows that wait keep theirs.
func TestNamesAreForgotten(t *testing.T) {
	r := newJoinRun(t, Options{Config: Config{Wait: 10, MaxRows: 100}, Slices: []string{"tenant"}})
	region := map[string]string{}
	check := func(b *arrowio.Batch) (pipeline.Rejects, error) {
		for i := 0; b.Kind == arrowio.Labelled && i < b.N; i++ {
			id := strings.TrimRight(string(b.IDs[i][:]), "\x00")
			if got := b.Slices[0].Values[b.Slices[0].Index[i]] + " " + b.Models[0].Version; got != region[id] {
				t.Errorf("row %s came out as %q, went in as %q", id, got, region[id])
			}
			r.joined = append(r.joined, id)
		}
		return b.Reject, nil
	}
	for i := range 5000 {
		id := fmt.Sprint("id", i)
		b := scriptBatch([]string{"p", id, fmt.Sprint(i), fmt.Sprintf("m/%d", i)})
		b.Slices = []arrowio.SliceColumn{{Name: "tenant", Values: []string{"t" + id}, Index: []int32{0}}}
		region[id] = fmt.Sprintf("t%s %d", id, i)
		for _, b := range []*arrowio.Batch{b, scriptBatch([]string{"l", fmt.Sprint("id", i-5), fmt.Sprint(i), "1"})} {
			if _, err := r.j.Process(context.Background(), b, check); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.j.Advance(context.Background(), int64(i), check); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.j.w.models) + len(r.j.w.values); n > 2000 || len(r.j.build) > 2000 || len(r.joined) < 4990 {
		t.Errorf("%d names and %d builders kept for %d waiting rows; %d joined", n, len(r.j.build), r.j.w.live,
			len(r.joined))
	}
}

// reopen puts the join's state and counts through their encoding.
func (r *joinRun) reopen() {
	r.t.Helper()
	b, err := r.j.AppendState(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	paths := map[string]string{}
	for _, f := range r.j.Files() {
		paths[f.Name] = f.Path
	}
	next := New(r.j.cfg, pipeline.Host{Out: r.out, Counts: r.counts, Log: quiet})
	if err := next.RestoreFiles(b, func(name, path string) error { return os.Link(paths[name], path) }); err != nil {
		r.t.Fatal(err)
	}
	again, err := next.AppendState(nil)
	if err != nil || string(again) != string(b) {
		r.t.Fatalf("state of %d bytes became %d, %v", len(b), len(again), err)
	}
	if err := r.j.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.j = next
}

// TestJoinedRowsKeepWhatTheyCameWith compares joined rows with those of labels that travelled with the scores, over
// everything that a row may carry: the statistics must be the same bytes.
func TestJoinedRowsKeepWhatTheyCameWith(t *testing.T) {
	t.Parallel()
	for _, o := range []batchtest.Options{
		{N: 200}, {N: 200, Weights: true, Served: true, Regions: 3}, {N: 200, Probs: true, Weights: true},
		{N: 200, K: 2, Probs: true}, {N: 200, Versions: []string{"a", "b"}},
	} {
		o.MaxLag = 1 // labels at their predictions' time, as labels in the same message have
		rows := batchtest.Rows(21, o)
		for i := range rows {
			rows[i].LabelTS = rows[i].TS
		}
		s := defaultSetup()
		s.slices = []string{"region"}
		joined := newWorld(t, s, worldtest.Stream(t, rows, 1, 16), 1).run(worldtest.AnyOrder)
		s.inputs = 1
		inline := newWorld(t, s, []worldtest.Lanes{{batchtest.Inline(t, rows, 16)}}, 1).run(worldtest.AnyOrder)
		if g, w := joined.Hash(), inline.Hash(); g != w {
			t.Errorf("%+v: hash %s, with labels in the messages %s", o, g, w)
		}
		if g, w := joined.Counts()["labelled"], inline.Counts()["labelled"]; g != 200 || w != 200 {
			t.Errorf("%+v: %d joined, %d in messages, want 200", o, g, w)
		}
		snaps := joined.Snapshots()
		last := snaps[len(snaps)-1]
		if o.Served != (last.Served != nil) {
			t.Errorf("%+v: served metrics %v", o, last.Served)
		}
	}
}

// TestRejectedRows sends what the validator must refuse: each row is counted by reason and in no statistic, and its
// message becomes a dead letter.
func TestRejectedRows(t *testing.T) {
	rows := batchtest.Rows(22, batchtest.Options{N: 40})
	nan, wide, range_ := slices.Clone(rows[10:11]), batchtest.Rows(23, batchtest.Options{N: 1, K: 7}),
		slices.Clone(rows[20:21])
	nan[0].Scores = []float32{1, float32(math.NaN()), 0, 0}
	range_[0].Label = 4
	s := defaultSetup()
	in := worldtest.Lanes{batchtest.Predictions(t, rows[:10], 4), batchtest.Labels(t, rows[:10], 10)}
	for _, r := range [][]batchtest.Row{nan, wide} {
		in[0] = append(in[0], batchtest.Predictions(t, r, 1)...)
	}
	in[0] = append(in[0], pipeline.Record{Input: pipeline.Logits, Topic: "logits", Value: []byte("nonsense"),
		Key: []byte("k"), Headers: []pipeline.Header{{Key: "h", Value: []byte("v")}}})
	in[0] = append(in[0], batchtest.Predictions(t, rows[20:21], 1)...)
	in[1] = append(in[1], batchtest.Labels(t, range_, 1)...)
	for l := range in {
		for i := range in[l] {
			in[l][i].Offset = int64(i)
		}
	}
	w := newWorld(t, s, []worldtest.Lanes{in}, 1).run(worldtest.LogitsFirst)
	n := w.Counts()
	for name, want := range map[string]int64{"predictions": 11, "labelled": 10, "rejected:nonfinite_scores": 1,
		"rejected:classes": 1, "rejected:label_range": 1,
		"dead_letters:nonfinite_scores": 1, "dead_letters:classes": 1, "dead_letters:label_range": 1} {
		if n[name] != want {
			t.Errorf("%s = %d, want %d (%v)", name, n[name], want, n)
		}
	}
	if len(w.Letters) != 4 {
		t.Fatalf("%d dead letters, want 4", len(w.Letters))
	}
	for _, m := range w.Letters {
		h := map[string]string{}
		for _, x := range m.Headers {
			h[x.Key] = string(x.Value)
		}
		if h["plumbline-reason"] == "" || h["plumbline-topic"] == "" || h["plumbline-offset"] == "" {
			t.Errorf("dead letter with headers %v", h)
		}
		if string(m.Value) == "nonsense" && (string(m.Key) != "k" || h["h"] != "v" || h["plumbline-offset"] != "5") {
			t.Errorf("key %q, headers %v; want those of the message, and offset 5", m.Key, h)
		}
	}
}
