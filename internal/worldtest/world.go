package worldtest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Task is a model task.
type Task interface {
	pipeline.Task
	Settle(ctx context.Context) error
	Hash() (map[string]string, error)
}

// Parts make what a World runs.
type Parts[T Task] struct {
	Inputs   int
	NewShard func(id, of int) *pipeline.Shard
	NewTask  func() T
	Fits     chan struct{} // the pool of fits, for one at a time
	Rarer    float64       // how many times rarer than they say Save and Crash are; 0: not at all
}

// World is a run without a broker: shards, a panes log, a model task, and the checkpoints of each. If Crash is above 0,
// then after every record each task saves with probability Save and loses its memory with probability Crash. The
// outputs that a checkpoint had fenced are then written again, as pipeline.Run does.
type World[T Task] struct {
	T           testing.TB
	Parts       Parts[T]
	Rand        *rand.Rand
	Save, Crash float64
	In          []Lanes
	Shards      []*pipeline.Shard
	Drained     []bool
	Saved       [][]byte
	Files       map[string][]byte // files that the checkpoints refer to
	Panes       []pipeline.Record
	Model       T
	SavedModel  []byte
	Outputs     []pipeline.Message // outputs of the model task, as written
	Letters     []pipeline.Message // dead letters of the shards
	Slow        float64            // share of the time during which no fit ends
	Held        bool               // no fit ends now
}

// New returns a world that has read nothing. The test closes its shards when it ends.
func New[T Task](t testing.TB, parts Parts[T], in []Lanes, seed uint64) *World[T] {
	w := &World[T]{T: t, Parts: parts, Rand: rand.New(rand.NewPCG(seed, 2)), In: in, Saved: make([][]byte, len(in)),
		Drained: make([]bool, len(in)), Model: parts.NewTask(), Files: map[string][]byte{}}
	t.Cleanup(w.close)
	for i := range in {
		w.Shards = append(w.Shards, parts.NewShard(i, len(in)))
	}
	return w
}

func (w *World[T]) close() {
	for _, s := range w.Shards {
		w.Must(s.Close())
	}
}

// Must ends the test at an error.
func (w *World[T]) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Run reads every lane to its end, in the order that p gives, then lets the inputs fall idle.
func (w *World[T]) Run(p Pick) {
	w.T.Helper()
	for w.Step(p) {
		w.MaybeCrash()
	}
	for i := range w.Shards {
		w.SaveShard(i)
	}
	w.Finish()
}

// Log reads every lane to its end, and returns the panes log, of which the model task has read nothing.
func (w *World[T]) Log(p Pick) []pipeline.Record {
	w.T.Helper()
	for w.read(p) {
	}
	return w.Panes
}

// Finish gives the model task the rest of the panes log, and all the time that its fits take.
func (w *World[T]) Finish() {
	w.ReadPanes(len(w.Panes))
	w.Hold(false)
	w.Must(w.Model.Settle(context.Background()))
	w.SaveModel()
}

// Hold takes the only place of the pool of fits, or gives it back: until then no fit ends.
func (w *World[T]) Hold(on bool) {
	if on != w.Held {
		if w.Held = on; on {
			w.Parts.Fits <- struct{}{}
		} else {
			<-w.Parts.Fits
		}
	}
}

// Step gives one record to one shard, and the model task some messages; false when every shard has drained.
func (w *World[T]) Step(p Pick) bool {
	w.T.Helper()
	if !w.read(p) {
		return false
	}
	if w.Slow > 0 && w.Rand.IntN(10) == 0 {
		w.Hold(w.Rand.Float64() < w.Slow)
	}
	w.ReadPanes(w.Rand.IntN(4))
	return true
}

// read gives one record to one shard; false when every shard has drained.
func (w *World[T]) read(p Pick) bool {
	var open []int
	for i := range w.Shards {
		if !w.Drained[i] {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return false
	}
	i := open[w.Rand.IntN(len(open))]
	s := w.Shards[i]
	var left [2]int
	for in := range w.Parts.Inputs {
		left[in] = len(w.In[i][in]) - int(max(s.Next()[pipeline.Input(in)], 0))
	}
	if left[0]+left[1] == 0 {
		for in := range w.Parts.Inputs {
			w.Must(s.Take(context.Background(), pipeline.Record{Input: pipeline.Input(in), Idle: true}))
		}
		w.Drained[i] = true
	} else {
		in := p(w.Rand, left)
		w.Must(batchtest.Lend(w.In[i][in][len(w.In[i][in])-left[in]], func(r pipeline.Record) error {
			return s.Take(context.Background(), r)
		}))
	}
	if w.Crash == 0 {
		w.Letters = append(w.Letters, s.Decided().Before...)
		w.WritePanes(s)
	}
	return true
}

// ReadPanes gives the model task up to n messages of the panes log.
func (w *World[T]) ReadPanes(n int) {
	for next := int(max(w.Model.Next()[pipeline.Panes], 0)); n > 0 && next < len(w.Panes); n-- {
		w.Must(w.Model.Take(context.Background(), w.Panes[next]))
		next++
	}
}

// MaybeCrash saves and crashes each task, with the probabilities of the world.
func (w *World[T]) MaybeCrash() {
	if w.Crash == 0 {
		return
	}
	save, crash := w.Save, w.Crash
	if by := w.Parts.Rarer; by > 0 {
		save, crash = save/by, crash/by
	}
	for i := range w.Shards {
		if w.Rand.Float64() < save {
			w.SaveShard(i)
		}
		if w.Rand.Float64() < crash {
			w.RestoreShard(i)
		}
	}
	if w.Rand.Float64() < save {
		w.SaveModel()
	}
	if w.Rand.Float64() < crash {
		w.Model = w.Parts.NewTask()
		if w.SavedModel != nil {
			w.Must(pipeline.RestoreCheckpoint(w.SavedModel, w.Model.Sections(), nil))
		}
	}
}

// SaveShard takes a checkpoint of a shard and writes the outputs that it fences off.
func (w *World[T]) SaveShard(i int) {
	s := w.Shards[i]
	w.Letters = append(w.Letters, s.Decided().Before...)
	c, err := pipeline.EncodeCheckpoint(s.Sections())
	w.Must(err)
	w.Saved[i] = c.Data
	for _, f := range c.Files {
		if w.Files[f.Name] == nil {
			w.Files[f.Name], err = os.ReadFile(f.Path)
			w.Must(err)
		}
	}
	if w.Crash > 0 && w.Rand.IntN(4) == 0 { // between the checkpoint and the outputs that it fences off
		w.RestoreShard(i)
		return
	}
	w.WritePanes(s)
}

// WritePanes appends what a shard has decided to the panes log.
func (w *World[T]) WritePanes(s *pipeline.Shard) {
	for _, m := range s.Decided().After {
		w.Panes = append(w.Panes, pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: int64(len(w.Panes)),
			Key: m.Key, Value: m.Value})
	}
	s.Written()
}

// RestoreShard starts a shard anew from its checkpoint.
func (w *World[T]) RestoreShard(i int) {
	w.Must(w.Shards[i].Close())
	s := w.Parts.NewShard(i, len(w.In))
	if w.Saved[i] != nil {
		w.Must(pipeline.RestoreCheckpoint(w.Saved[i], s.Sections(),
			func(name, path string) error { return os.WriteFile(path, w.Files[name], 0o644) }))
		again, err := pipeline.EncodeCheckpoint(s.Sections())
		w.Must(err)
		if !bytes.Equal(again.Data, w.Saved[i]) {
			w.T.Fatalf("shard %d: a restored checkpoint of %d bytes encodes to another one of %d", i, len(w.Saved[i]),
				len(again.Data))
		}
	}
	w.WritePanes(s)
	w.Shards[i], w.Drained[i] = s, false
}

// SaveModel takes a checkpoint of the model task.
func (w *World[T]) SaveModel() {
	w.Outputs = append(w.Outputs, w.Model.Decided().Before...)
	w.Model.Written()
	c, err := pipeline.EncodeCheckpoint(w.Model.Sections())
	w.Must(err)
	w.SavedModel = c.Data
}

// Hash is the state hash of every model.
func (w *World[T]) Hash() string {
	w.T.Helper()
	h, err := w.Model.Hash()
	w.Must(err)
	b, err := json.Marshal(h)
	w.Must(err)
	return string(b)
}

// Counts sums the counts of the shards.
func (w *World[T]) Counts() map[string]int64 {
	sum := map[string]int64{}
	for _, s := range w.Shards {
		for name, n := range s.Counts.All() {
			if !strings.HasPrefix(name, pipeline.CountMessages) {
				sum[name] += n
			}
		}
	}
	if n, detail := pipeline.Unaccounted(sum); n != 0 {
		w.T.Errorf("counts do not add up: %s", detail)
	}
	maps.DeleteFunc(sum, func(_ string, n int64) bool { return n == 0 })
	return sum
}

// Snapshots are the published ones.
func (w *World[T]) Snapshots() []record.Snapshot {
	w.T.Helper()
	return DecodeAll[record.Snapshot](w.T, w.Outputs, pipeline.StreamSnapshots)
}

// Finals returns the newest snapshot of every window that is of kind time, by name, version, slice and start.
func (w *World[T]) Finals() map[string]record.Snapshot {
	out := map[string]record.Snapshot{}
	for _, s := range w.Snapshots() {
		if s.Window.Kind == "time" {
			out[strings.Join([]string{s.Window.Name, s.Version, s.Slice, s.Window.Start.String()}, "|")] = s
		}
	}
	return out
}

// Compare reports the differences between two runs over the same rows.
func (w *World[T]) Compare(want *World[T]) {
	t := w.T
	t.Helper()
	if got, want := w.Hash(), want.Hash(); got != want {
		t.Errorf("state hash %s, want %s", got, want)
	}
	got, wanted := w.Counts(), want.Counts()
	if len(w.Shards) != len(want.Shards) {
		// How much has expired by the end depends on how far each shard has come.
		for _, name := range []string{pipeline.CountExpired, pipeline.CountWaiting} {
			delete(got, name)
			delete(wanted, name)
		}
	}
	if !maps.Equal(got, wanted) {
		t.Errorf("counts %v, want %v", got, wanted)
	}
	CompareOutputs(t, Firsts(w.Outputs), Firsts(want.Outputs))
	if got, want := Firsts(w.Letters), Firsts(want.Letters); !reflect.DeepEqual(got, want) {
		t.Errorf("%d lanes of dead letters, want %d", len(got), len(want))
	}
}
