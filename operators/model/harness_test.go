package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/proving"

	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

const second = batchtest.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// setup is the part of the configuration that tests vary. The wiring is that of internal/engine.
type setup struct {
	inputs   int
	lateness int64
	join     join.Options
	model    ModelConfig
	slices   []string
	maxKeys  int
	apply    *apply.Published
	heads    *shadow.Heads // nil = no shadows
	classes  string
}

func defaultSetup() setup {
	a := acc.Config{Bins: 15, SoftBins: 15, SoftTemperature: .01, SampleRows: 1024, SampleBytes: 262144, SampleSeed: 7}
	return setup{inputs: 2, lateness: 0, maxKeys: 100,
		join: join.Options{Config: join.Config{Wait: 120 * time.Second, MaxRows: 1 << 20}},
		model: ModelConfig{Pane: 10 * second, Acc: a, Bins: 15, ExtraBins: []int{10}, CDFNu: .1, Resamples: 20,
			SampleRows: 4096, FinalAfter: 120 * second,
			Windows: []window.Config{{Name: "tumbling", Kind: "time", Size: 60 * time.Second, Slide: 60 * time.Second},
				{Name: "sliding", Kind: "time", Size: 60 * time.Second, Slide: 20 * time.Second},
				{Name: "rows", Kind: "rows", Rows: 300}, {Name: "rows-tumbling", Kind: "rows", Rows: 300, Every: 300}},
			Rules: []rule.Config{{Name: "excess", Signal: "calibrated", Severity: "warning", Rows: 400, MinRows: 200,
				WarmupRows: 200, Fire: .05, Clear: .03, For: 10 * time.Second, ClearFor: 10 * time.Second,
				Slices: true}},
			Refit: refit.Config{Method: "temperature", Period: 60 * time.Second, OnAlarm: true, FreshRows: 300,
				MinRows: 200, MaxRows: 2000, TestShare: .3, Delay: 2, Alpha: .05, ValidationRows: 1000,
				RollbackPanes: 10_000, Online: true, MaxECERise: .01, MaxAccuracyDrop: .01,
				Cooldown: 20 * time.Second}}}
}

func (s *setup) shard(id, of int) *pipeline.Shard {
	counts := pipeline.NewCounts()
	h := pipeline.Host{Out: pipeline.NewOut(counts), Outbox: pipeline.NewOutbox(id, of, s.model.Pane, 1),
		Counts: counts, Log: quiet}
	waiting := s.join
	waiting.Slices, waiting.Name = s.slices, fmt.Sprintf("shard-%d", id)
	c := operators.Config{Validate: &validate.Config{NeedID: s.inputs == 2}, Join: &waiting,
		Stats: &stats.Options{Acc: s.model.Acc, Pane: s.model.Pane, Slices: s.slices, MaxKeys: s.maxKeys,
			Classes: s.classes}}
	if s.apply != nil {
		c.Apply = &apply.Options{Published: s.apply}
	}
	if s.heads != nil {
		c.Shadow = &shadow.Options{Config: proving.Config{MemoryBytes: 1 << 20}, Pane: s.model.Pane,
			Wait: int64(s.join.Wait), Heads: s.heads}
	}
	return pipeline.NewShard(pipeline.ShardSpec{ID: id, Inputs: s.inputs, PaneLength: s.model.Pane,
		Watermark: pipeline.NewWatermark(s.inputs,
			s.lateness), Decoder: arrowio.NewDecoder(arrowio.Options{Slices: s.slices}),
		Stages: operators.Chain(c, h), Host: h})
}

func (s *setup) task() *ModelTask { return NewModelTask(s.model, 0, pipeline.NewCounts(), quiet) }

// lanes are the records of one shard by input, each in offset order.
type lanes [2][]pipeline.Record

// stream encodes rows for the given number of shards.
func stream(t testing.TB, rows []batchtest.Row, shards, batch int) []lanes {
	out := make([]lanes, shards)
	for i, part := range batchtest.Split(rows, shards) {
		out[i] = lanes{batchtest.Predictions(t, part, batch), batchtest.Labels(t, batchtest.ByLabelTime(part), batch)}
	}
	return out
}

// pick chooses the lane to read next, given how much is left in each.
type pick func(r *rand.Rand, left [2]int) int

func logitsFirst(_ *rand.Rand, left [2]int) int {
	if left[0] > 0 {
		return 0
	}
	return 1
}

func labelsFirst(_ *rand.Rand, left [2]int) int {
	if left[1] > 0 {
		return 1
	}
	return 0
}

func anyOrder(r *rand.Rand, left [2]int) int {
	if r.IntN(left[0]+left[1]) < left[0] {
		return 0
	}
	return 1
}

// records yields the records of both lanes. p picks the lane of the next record.
func (in lanes) records(r *rand.Rand, p pick) iter.Seq[pipeline.Record] {
	return func(yield func(pipeline.Record) bool) {
		for next := [2]int{}; next[0] < len(in[0]) || next[1] < len(in[1]); {
			l := p(r, [2]int{len(in[0]) - next[0], len(in[1]) - next[1]})
			if !yield(in[l][next[l]]) {
				return
			}
			next[l]++
		}
	}
}

// world is a run without a broker: shards, a panes log, a model task, and the checkpoints of each. If crash is above 0,
// then after every record each task saves with probability save and loses its memory with probability crash. The
// outputs that a checkpoint had fenced are then written again, as pipeline.Run does.
type world struct {
	t           testing.TB
	setup       setup
	r           *rand.Rand
	save, crash float64
	in          []lanes
	shards      []*pipeline.Shard
	drained     []bool
	saved       [][]byte
	files       map[string][]byte // files that the checkpoints refer to
	panes       []pipeline.Record
	model       *ModelTask
	savedModel  []byte
	outputs     []pipeline.Message // outputs of the model task, as written
	letters     []pipeline.Message // dead letters of the shards
	slow        float64            // share of the time during which no fit ends
	held        bool
}

func newWorld(t testing.TB, s setup, in []lanes, seed uint64) *world {
	w := &world{t: t, setup: s, r: rand.New(rand.NewPCG(seed, 2)), in: in, saved: make([][]byte, len(in)),
		drained: make([]bool, len(in)), model: s.task(), files: map[string][]byte{}}
	t.Cleanup(w.close)
	if w.setup.model.Fits == nil {
		w.setup.model.Fits = refit.NewPool(1)
		w.model = w.setup.task()
	}
	for i := range in {
		w.shards = append(w.shards, s.shard(i, len(in)))
	}
	return w
}

func (w *world) close() {
	for _, s := range w.shards {
		w.must(s.Close())
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// run reads every lane to its end, in the order of p, then lets the inputs become idle.
func (w *world) run(p pick) *world {
	w.t.Helper()
	for w.step(p) {
		w.maybeCrash()
	}
	for i := range w.shards {
		w.saveShard(i)
	}
	w.finish()
	return w
}

// finish gives the model task the rest of the panes log and waits for its fits.
func (w *world) finish() {
	w.readPanes(len(w.panes))
	w.hold(false)
	w.must(w.model.Settle(context.Background()))
	w.saveModel()
}

// hold takes the only place of the pool of fits, or returns it. While it is taken, no fit ends.
func (w *world) hold(on bool) {
	if on != w.held {
		if w.held = on; on {
			w.setup.model.Fits <- struct{}{}
		} else {
			<-w.setup.model.Fits
		}
	}
}

// step gives one record to one shard. It returns false when every shard has drained.
func (w *world) step(p pick) bool {
	var open []int
	for i := range w.shards {
		if !w.drained[i] {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return false
	}
	i := open[w.r.IntN(len(open))]
	s := w.shards[i]
	var left [2]int
	for in := range w.setup.inputs {
		left[in] = len(w.in[i][in]) - int(max(s.Next()[pipeline.Input(in)], 0))
	}
	if left[0]+left[1] == 0 {
		for in := range w.setup.inputs {
			w.must(s.Take(context.Background(), pipeline.Record{Input: pipeline.Input(in), Idle: true}))
		}
		w.drained[i] = true
	} else {
		in := p(w.r, left)
		w.must(s.Take(context.Background(), w.in[i][in][len(w.in[i][in])-left[in]]))
	}
	if w.crash == 0 {
		w.letters = append(w.letters, s.Decided().Before...)
		w.writePanes(s)
	}
	if w.slow > 0 && w.r.IntN(10) == 0 {
		w.hold(w.r.Float64() < w.slow)
	}
	w.readPanes(w.r.IntN(4))
	return true
}

// readPanes gives the model task up to n messages of the panes log.
func (w *world) readPanes(n int) {
	for next := int(max(w.model.next, 0)); n > 0 && next < len(w.panes); n-- {
		w.must(w.model.Take(context.Background(), w.panes[next]))
		next++
	}
}

// thin is how many times rarer crashes are than in a long run, because a checkpoint costs more than the rows between
// two.
func thin() float64 { return testsize.Pick(2.0, 1) }

func (w *world) maybeCrash() {
	if w.crash == 0 {
		return
	}
	save, crash := w.save/thin(), w.crash/thin()
	for i := range w.shards {
		if w.r.Float64() < save {
			w.saveShard(i)
		}
		if w.r.Float64() < crash {
			w.restoreShard(i)
		}
	}
	if w.r.Float64() < save {
		w.saveModel()
	}
	if w.r.Float64() < crash {
		w.model = w.setup.task()
		if w.savedModel != nil {
			w.must(pipeline.RestoreCheckpoint(w.savedModel, w.model.Sections(), nil))
		}
	}
}

func (w *world) saveShard(i int) {
	s := w.shards[i]
	w.letters = append(w.letters, s.Decided().Before...)
	c, err := pipeline.EncodeCheckpoint(s.Sections())
	w.must(err)
	w.saved[i] = c.Data
	for _, f := range c.Files {
		if w.files[f.Name] == nil {
			w.files[f.Name], err = os.ReadFile(f.Path)
			w.must(err)
		}
	}
	if w.crash > 0 && w.r.IntN(4) == 0 { // between the checkpoint and the outputs that it fences
		w.restoreShard(i)
		return
	}
	w.writePanes(s)
}

func (w *world) writePanes(s *pipeline.Shard) {
	for _, m := range s.Decided().After {
		w.panes = append(w.panes, pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: int64(len(w.panes)),
			Key: m.Key, Value: m.Value})
	}
	s.Written()
}

func (w *world) restoreShard(i int) {
	w.must(w.shards[i].Close())
	s := w.setup.shard(i, len(w.in))
	if w.saved[i] != nil {
		w.must(pipeline.RestoreCheckpoint(w.saved[i], s.Sections(),
			func(name, path string) error { return os.WriteFile(path, w.files[name], 0o644) }))
		again, err := pipeline.EncodeCheckpoint(s.Sections())
		w.must(err)
		if !bytes.Equal(again.Data, w.saved[i]) {
			w.t.Fatalf("shard %d: a restored checkpoint of %d bytes encodes to another one of %d", i, len(w.saved[i]),
				len(again.Data))
		}
	}
	w.writePanes(s)
	w.shards[i], w.drained[i] = s, false
}

func (w *world) saveModel() {
	w.outputs = append(w.outputs, w.model.Decided().Before...)
	w.model.Written()
	c, err := pipeline.EncodeCheckpoint(w.model.Sections())
	w.must(err)
	w.savedModel = c.Data
}

func (w *world) hash() string {
	w.t.Helper()
	h, err := w.model.Hash()
	w.must(err)
	b, err := json.Marshal(h)
	w.must(err)
	return string(b)
}

// counts sums the counts of the shards.
func (w *world) counts() map[string]int64 {
	sum := map[string]int64{}
	for _, s := range w.shards {
		for name, n := range s.Counts.All() {
			if !strings.HasPrefix(name, pipeline.CountMessages) {
				sum[name] += n
			}
		}
	}
	if n, detail := pipeline.Unaccounted(sum); n != 0 {
		w.t.Errorf("counts do not add up: %s", detail)
	}
	maps.DeleteFunc(sum, func(_ string, n int64) bool { return n == 0 })
	return sum
}

// firsts returns the outputs by stream and key, in order and without repeats.
func firsts(ms []pipeline.Message) map[string][]string {
	out, seen := map[string][]string{}, map[string]bool{}
	for _, m := range ms {
		lane := fmt.Sprintf("%s %s", m.Stream, m.Key)
		v := fmt.Sprintf("%d %s", m.Time, m.Value)
		if !seen[lane+v] {
			seen[lane+v] = true
			out[lane] = append(out[lane], v)
		}
	}
	return out
}

func (w *world) snapshots() []record.Snapshot {
	w.t.Helper()
	return decodeAll[record.Snapshot](w.t, w.outputs, pipeline.StreamSnapshots)
}

func decodeAll[T any](t testing.TB, ms []pipeline.Message, s pipeline.Stream) []T {
	t.Helper()
	var out []T
	for _, m := range ms {
		if m.Stream == s {
			var v T
			if err := json.Unmarshal(m.Value, &v); err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// finals returns the newest snapshot of every time window, by name, slice, version and start.
func (w *world) finals() map[string]record.Snapshot {
	out := map[string]record.Snapshot{}
	for _, s := range w.snapshots() {
		if s.Window.Kind == "time" {
			out[strings.Join([]string{s.Window.Name, s.Version, s.Slice, s.Window.Start.String()}, "|")] = s
		}
	}
	return out
}

// inTurn picks the topic that has more records left.
func inTurn(_ *rand.Rand, left [2]int) int {
	if left[0] >= left[1] && left[0] > 0 {
		return 0
	}
	return 1
}
