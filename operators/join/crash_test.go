package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
)

var errCrash = errors.New("crash")

// crashPoint is where a process ends in or around a Save.
type crashPoint int

const (
	crashBefore       crashPoint = iota // nothing is written
	crashInFiles                        // some files are there, one under its temporary name
	crashAfterFiles                     // no checkpoint refers to them
	crashAfter                          // the checkpoint is there, its outputs are not
	damagedCheckpoint                   // and cannot be read
	damagedFile                         // one of its files has other bytes
	missingFile
	crashPoints
)

// faultStore is a directory of checkpoints whose process ends at random points.
type faultStore struct {
	*dirstore.Store
	t       *testing.T
	r       *rand.Rand
	rate    float64
	hit     *[crashPoints]int
	damaged *bool // it was: two damaged ones in a row are for a person to decide
}

func (s *faultStore) Save(ctx context.Context, key string, number uint64, c pipeline.Checkpoint) error {
	if s.r.Float64() >= s.rate {
		err := s.Store.Save(ctx, key, number, c)
		*s.damaged = *s.damaged && err != nil
		return err
	}
	p := crashPoint(s.r.IntN(int(crashPoints)))
	dir := filepath.Join(s.Dir, key)
	before := s.referred(ctx, key)
	var fresh []string
	for _, f := range c.Files {
		if !before[f.Name] {
			fresh = append(fresh, filepath.Join(dir, "files", f.Name))
		}
	}
	if p >= damagedCheckpoint && (*s.damaged || number == 1) || p >= damagedFile && len(fresh) == 0 {
		p = crashAfter
	}
	*s.damaged = p >= damagedCheckpoint || p < crashAfter && *s.damaged
	s.hit[p]++
	switch p {
	case crashBefore:
	case crashInFiles, crashAfterFiles:
		s.copyFiles(filepath.Join(dir, "files"), c.Files, before, p == crashInFiles)
	default:
		if err := s.Store.Save(ctx, key, number, c); err != nil {
			return err
		}
	}
	switch p {
	case damagedCheckpoint:
		s.damage(filepath.Join(dir, fmt.Sprintf("checkpoint-%020d", number)))
	case damagedFile:
		s.damage(fresh[s.r.IntN(len(fresh))])
	case missingFile:
		if err := os.Remove(fresh[s.r.IntN(len(fresh))]); err != nil {
			s.t.Error(err)
		}
	}
	return errCrash
}

// referred are the files that stored checkpoints refer to.
func (s *faultStore) referred(ctx context.Context, key string) map[string]bool {
	stored, err := s.Load(ctx, key)
	if err != nil {
		s.t.Error(err)
	}
	out := map[string]bool{}
	for _, st := range stored {
		data, err := st.Read()
		if err != nil {
			s.t.Error(err)
		}
		files, _ := pipeline.Files(data) // of a damaged one: none
		for _, f := range files {
			out[f.Name] = true
		}
	}
	return out
}

func (s *faultStore) copyFiles(to string, files []pipeline.File, before map[string]bool, torn bool) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		s.t.Error(err)
	}
	for i, f := range files {
		b, err := os.ReadFile(f.Path)
		name := filepath.Join(to, f.Name)
		if torn && i == len(files)/2 {
			b, name = b[:len(b)/2], name+"-1.tmp"
		}
		if err == nil && !before[f.Name] {
			_ = os.Remove(name) // it may be a link to a file in use
			err = os.WriteFile(name, b, 0o644)
		}
		if err != nil {
			s.t.Error(err)
		}
		if torn && i == len(files)/2 {
			return
		}
	}
}

func (s *faultStore) damage(name string) {
	b, err := os.ReadFile(name)
	if err == nil {
		b[s.r.IntN(len(b))] ^= 0x10
		err = os.WriteFile(name, b, 0o644)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// laneSource yields what is left of two lanes in random order, then that both are idle, then the end; or a crash.
type laneSource struct {
	in    worldtest.Lanes
	at    [2]int
	idle  int
	r     *rand.Rand
	crash float64
}

func (s *laneSource) Next(context.Context) (pipeline.Record, error) {
	left := [2]int{len(s.in[0]) - s.at[0], len(s.in[1]) - s.at[1]}
	switch {
	case s.r.Float64() < s.crash:
		return pipeline.Record{}, errCrash
	case left[0]+left[1] > 0:
		l := worldtest.AnyOrder(s.r, left)
		s.at[l]++
		return s.in[l][s.at[l]-1], nil
	case s.idle < 2:
		s.idle++
		return pipeline.Record{Input: pipeline.Input(s.idle - 1), Idle: true}, nil
	}
	return pipeline.Record{}, io.EOF
}

func (s *laneSource) Commit(context.Context, map[pipeline.Input]int64) error { return nil }
func (s *laneSource) CaughtUp() bool                                         { return s.idle == 2 }
func (s *laneSource) Close() error                                           { return nil }

// logSink appends pane messages to the panes topic, and fails now and then after some of them.
type logSink struct {
	w     *world
	r     *rand.Rand
	crash float64
}

func (s *logSink) Write(_ context.Context, ms []pipeline.Message) error {
	for _, m := range ms {
		if m.Stream != pipeline.StreamPanes {
			s.w.Letters = append(s.w.Letters, m)
			continue
		}
		if s.r.Float64() < s.crash {
			return errCrash
		}
		s.w.Panes = append(s.w.Panes, pipeline.Record{Input: pipeline.Panes, Topic: "panes",
			Offset: int64(len(s.w.Panes)), Key: m.Key, Value: m.Value})
	}
	return nil
}

func (s *logSink) Close() error { return nil }

// TestCrashPointsWithFiles runs a shard whose rows wait on disk under pipeline.Run, in a directory of checkpoints, and
// ends its process at random points, in checkpoints above all, also with damaged files, until it gets to the end: the
// model task must see what it sees of the shard that was left alone.
func TestCrashPointsWithFiles(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(51, batchtest.Options{N: 500, MaxLag: 60 * second, Unlabelled: .1, Sharpness: 2,
		Regions: 2, Versions: []string{"a", "b"}})
	s := defaultSetup()
	s.slices = []string{"region"}
	s.join.Remember = 200
	in := worldtest.Stream(t, rows, 1, 8)
	want := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
	var hit [crashPoints]int
	for seed := range uint64(6) {
		// The source is read while checkpoints are written.
		r, reading := rand.New(rand.NewPCG(seed, 9)), rand.New(rand.NewPCG(seed, 10))
		c := s
		c.join = onDisk(t, s.join, 3)
		w := newWorld(t, c, in, seed)
		dir, damaged := t.TempDir(), false
		for restarts := 0; ; restarts++ {
			store := &faultStore{Store: &dirstore.Store{Dir: dir, Keep: 2}, t: t, r: r, rate: .3, hit: &hit,
				damaged: &damaged}
			err := pipeline.Run(t.Context(), pipeline.Runner{Group: "g", Store: store, Sink: &logSink{w, r, .01},
				Interval: time.Hour, Log: slog.New(slog.DiscardHandler)},
				func() (pipeline.Registered, error) {
					w.Shards[0] = c.shard(0, 1)
					w.Shards[0].CheckpointRows = 40
					return w.Shards[0].ForRun(), nil
				},
				func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
					return pipeline.Opened{Source: &laneSource{in: in[0], at: [2]int{int(max(next[0], 0)),
						int(max(next[1], 0))}, r: reading, crash: .01}}, nil
				})
			if err == nil {
				break
			}
			if !errors.Is(err, errCrash) || restarts > 1000 {
				t.Fatalf("seed %d, restart %d: %v", seed, restarts, err)
			}
		}
		w.Finish()
		w.compare(want)
		if left, _ := filepath.Glob(filepath.Join(c.join.Dir, "*")); len(left) > 0 {
			t.Errorf("seed %d: %s left in the work directory", seed, strings.Join(left, ", "))
		}
	}
	for p, n := range hit {
		if n == 0 {
			t.Errorf("crash point %d was never hit", p)
		}
	}
}
