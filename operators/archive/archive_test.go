package archive

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	sinkarchive "github.com/plumbline/plumbline/sinks/archive"
)

// archiveD is the number of features of the rows here; odd, so that float16 features do not fill their words.
const archiveD = 5

// featuresOfRow are functions of the id that a float16 holds; nil for some.
func featuresOfRow(id string) []float32 {
	h := xxh3.HashString(id)
	if h%7 == 0 {
		return nil
	}
	x := make([]float32, archiveD)
	for i := range x {
		x[i] = float32(int(h>>(8*i)&0xff)-128) / 16
	}
	return x
}

// withFeatures encodes rows as batchtest.Predictions does, with features; the labels travel with every third message.
func withFeatures(t testing.TB, rows []batchtest.Row, batch int) []pipeline.Record {
	var out []pipeline.Record
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && n < batch && rows[n].Version == rows[0].Version {
			n++
		}
		c := arrowio.Columns{Model: rows[0].Model, Version: rows[0].Version, K: len(rows[0].Scores), D: archiveD,
			HalfFeatures: len(out)%2 == 0}
		for i := range rows[:n] {
			r := &rows[i]
			c.IDs, c.TS, c.Logits, c.Weight = append(c.IDs, r.ID), append(c.TS, r.TS), append(c.Logits, r.Scores...),
				append(c.Weight, r.Weight)
			x := featuresOfRow(r.ID)
			if x == nil {
				x = slices.Repeat([]float32{float32(math.NaN())}, archiveD)
			}
			c.Features = append(c.Features, x...)
			if len(out)%3 == 0 {
				c.Label = append(c.Label, r.Label)
			}
		}
		c.Slices = []arrowio.StringColumn{{Name: "region"}}
		for _, r := range rows[:n] {
			c.Slices[0].Values = append(c.Slices[0].Values, r.Region)
		}
		b, err := arrowio.EncodePredictions(c)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pipeline.Record{Input: pipeline.Logits, Topic: "logits", Offset: int64(len(out)),
			Time: rows[n-1].TS, Value: b})
		rows = rows[n:]
	}
	return out
}

// features is the value of Config.Features.
func features(half bool) string {
	if half {
		return FeaturesHalf
	}
	return FeaturesSingle
}

// archiveSetup is a shard with an archive.
type archiveSetup struct {
	join    join.Options
	archive Options
}

func (s *archiveSetup) shard() *pipeline.Shard {
	counts := pipeline.NewCounts()
	h := pipeline.Host{Out: pipeline.NewOut(counts), Outbox: pipeline.NewOutbox(0, 1, 10*second, 1), Counts: counts,
		Log: quiet}
	return pipeline.NewShard(pipeline.ShardSpec{Inputs: 2, PaneLength: 10 * second,
		Watermark: pipeline.NewWatermark(2, 0),
		Decoder:   arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}}), Host: h,
		Stages: []pipeline.Stage{validate.New(validate.Config{}, h).Stage(), join.New(s.join, h).Stage(),
			New(s.archive, h).Stage()}})
}

func archiveOf(s *pipeline.Shard) *Operator { return s.Stages[2].Operator.(*Operator) }

func newArchiveSetup(t testing.TB, half bool) archiveSetup {
	s := archiveSetup{join: join.Options{
		Config: join.Config{
			Wait:        24 * time.Hour,
			MaxRows:     1 << 20,
			Dir:         t.TempDir(),
			MemoryBytes: 8 << 10,
		},
		Slices:       []string{"region"},
		FeatureBytes: 4,
		Name:         "j",
		SegmentBytes: 2 << 10,
	},
		archive: Options{Config: Config{Features: features(half), Logits: true, RollRows: 30, RollBytes: 64 << 10,
			RollTime: 20 * time.Second, MemoryBytes: 4 << 10}, Group: "g", Slices: []string{"region"},
			Dir: t.TempDir(), Name: "a", batchBytes: 600, retry: time.Millisecond}}
	if half {
		s.join.FeatureBytes = 2
	}
	return s
}

func archiveRows(t testing.TB) ([]batchtest.Row, worldtest.Lanes) {
	rows := batchtest.Rows(91, batchtest.Options{N: 400, MaxLag: 30 * second, Unlabelled: .1, Regions: 3,
		Weights: true, Versions: []string{"v/1", ".."}})
	return rows, worldtest.Lanes{withFeatures(t, rows, 4), batchtest.Labels(t, batchtest.ByLabelTime(rows), 3)}
}

// lines is what the archive must have of the rows.
func lines(rows []batchtest.Row) []string {
	var out []string
	for _, r := range rows {
		if x := featuresOfRow(r.ID); x != nil && r.Label >= 0 {
			h := xxh3.HashString128(r.ID).Bytes()
			out = append(out, fmt.Sprint(base64.StdEncoding.EncodeToString(h[:]), " ", r.Version, " ", r.TS, " ",
				r.Label, " ", x, " ", r.Scores, " ", r.Weight, " ", r.Region))
		}
	}
	slices.Sort(out)
	return out
}

// archivedLines reads every file of an archive.
func archivedLines(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	for _, path := range archiveFiles(t, dir) {
		tab, err := table.Open(path, table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range tab.N {
			out = append(out, fmt.Sprint(tab.IDs[i], " ", tab.Version, " ", tab.TS[i], " ", tab.Label[i], " ",
				tab.Features[i*tab.D:(i+1)*tab.D], " ",
				tab.Scores32[i*tab.K:(i+1)*tab.K], " ", tab.Weight[i], " ", tab.Slices["region"][i]))
		}
	}
	slices.Sort(out)
	return out
}

// archiveFiles are the files of an archive; nothing but what is complete may have such a name.
func archiveFiles(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".arrow") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestArchivedIDs: files have what the key makes of ids; the join has the ids themselves, so every row is there.
func TestArchivedIDs(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	dir := t.TempDir()
	s := newArchiveSetup(t, false)
	s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
	s.archive.AtOnce = true
	s.archive.ID = func(id arrowio.ID) (out arrowio.ID) { return arrowio.ID{id[0], id[1], 0xff} }
	shard := s.shard()
	for rec := range in.Records(rand.New(rand.NewPCG(3, 3)), worldtest.AnyOrder) {
		if err := shard.Take(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := shard.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range archivedLines(t, dir) {
		id, _, _ := strings.Cut(line, " ")
		b, err := base64.StdEncoding.DecodeString(id)
		if err != nil || b[2] != 0xff || b[15] != 0 {
			t.Fatalf("id %x in the archive, %v", b, err)
		}
		n++
	}
	if want := len(lines(rows)); n != want {
		t.Errorf("%d rows in the archive, want %d", n, want)
	}
	if err := shard.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveHasEveryRowOnce: labelled rows with features, of both topics and with labels of their own, in float16 and
// float32, with rolls by rows, bytes, time and memory.
func TestArchiveHasEveryRowOnce(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	for _, half := range []bool{true, false} {
		dir := t.TempDir()
		s := newArchiveSetup(t, half)
		s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
		shard := s.shard()
		r := rand.New(rand.NewPCG(3, 3))
		for rec := range in.Records(r, worldtest.AnyOrder) {
			if err := shard.Take(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			archiveOf(shard).queue.showAll()
		}
		if err := archiveOf(shard).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		compareLines(t, archivedLines(t, dir), lines(rows))
		counts := shard.Counts.All()
		labelled := 0
		for _, r := range rows {
			if r.Label >= 0 {
				labelled++
			}
		}
		if got := counts[CountArchived] + counts[CountArchiveSkipped+":"+ReasonNoFeatures]; got != int64(labelled) ||
			counts[CountArchived] != int64(len(lines(rows))) {
			t.Errorf("counts %v, want %d labelled rows in them", counts, labelled)
		}
		if n := len(archiveFiles(t, dir)); int64(n) != counts[CountArchiveFiles] || n < 10 {
			t.Errorf("%d files, counted %d, want 10 at least", n, counts[CountArchiveFiles])
		}
		if err := shard.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func compareLines(t testing.TB, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	count := map[string]int{}
	for _, l := range want {
		count[l]++
	}
	for _, l := range got {
		count[l]--
	}
	bad := 0
	for _, l := range slices.Sorted(maps.Keys(count)) {
		if n := count[l]; n != 0 && bad < 5 {
			bad++
			t.Errorf("%d too few of: %s", n, l)
		}
	}
	t.Errorf("%d rows, want %d", len(got), len(want))
}

// crashStore loses checkpoints, or the process between a checkpoint and what follows it.
type crashStore struct {
	*worldtest.FrailStore
	r     *rand.Rand
	crash float64
	now   **pipeline.Shard
}

func (s *crashStore) Save(ctx context.Context, key string, n uint64, c pipeline.Checkpoint) error {
	if s.r.Float64() < s.crash {
		return worldtest.ErrKilled
	}
	if err := s.FrailStore.Save(ctx, key, n, c); err != nil {
		return err
	}
	if s.r.Float64() < s.crash {
		return worldtest.ErrKilled
	}
	archiveOf(*s.now).Durable()
	if s.r.IntN(2) == 0 { // else the next records come while files are published
		return archiveOf(*s.now).queue.empty(ctx)
	}
	return nil
}

// nappingSource lets what is beside it go on now and then: in virtual time, until that waits too.
type nappingSource struct{ *worldtest.MortalSource }

func (s nappingSource) Next(ctx context.Context) (pipeline.Record, error) {
	if s.Rand.IntN(8) == 0 {
		time.Sleep(2 * time.Millisecond)
	}
	return s.MortalSource.Next(ctx)
}

// crashRun runs the lanes through pipeline.Run with crashes everywhere, damaged checkpoints among them, and returns the
// counts.
func crashRun(t *testing.T, seed uint64, s archiveSetup, in worldtest.Lanes, dir string,
	damage bool) (counts map[string]int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { counts = crashing(t, seed, s, in, dir, damage) })
	return counts
}

func crashing(t *testing.T, seed uint64, s archiveSetup, in worldtest.Lanes, dir string, damage bool) map[string]int64 {
	r := rand.New(rand.NewPCG(seed, 5))
	var shard *pipeline.Shard
	store := &crashStore{FrailStore: &worldtest.FrailStore{},
		r: rand.New(rand.NewPCG(seed, 6)), crash: .15, now: &shard}
	archive := sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet})
	chance := rand.New(rand.NewPCG(seed, 7))
	s.archive.Publish = func(ctx context.Context, f *archivefile.File) error { // one goroutine of one shard at a time
		if chance.IntN(8) == 0 {
			return worldtest.ErrKilled
		}
		err := archive.Publish(ctx, f)
		if err == nil && chance.IntN(8) == 0 {
			return worldtest.ErrKilled // it is there, and nobody knows
		}
		return err
	}
	for kills := 14; ; kills-- {
		if kills == 0 {
			store.crash = 0
		}
		rn := pipeline.Runner{Group: "g", Store: store, Sink: &worldtest.PaneLog{}, Interval: 1 << 40, Log: quiet}
		err := pipeline.Run(t.Context(), rn, func() (pipeline.Registered, error) {
			shard = s.shard()
			shard.CheckpointRows = 1 + r.Int64N(40)
			return shard.ForRun(), nil
		}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
			src := &worldtest.MortalSource{Rand: r, Lanes: in, At: [2]int64{max(next[0], 0), max(next[1], 0)}, Left: -1}
			if kills > 0 {
				src.Left = r.IntN(len(in[0]))
			}
			return pipeline.Opened{Source: nappingSource{src}}, nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, worldtest.ErrKilled) {
			t.Fatal(err)
		}
		if damage {
			store.Damage(r.IntN(3))
		}
	}
	// Whoever comes next makes the last files whole.
	last := s.shard()
	newest := store.Saved[len(store.Saved)-1]
	err := pipeline.RestoreCheckpoint(newest.Data, last.Sections(), store.Fetch)
	if err == nil {
		err = archiveOf(last).Flush(t.Context())
	}
	if err = errors.Join(err, last.Close()); err != nil {
		t.Fatal(err)
	}
	return last.Counts.All()
}

// TestArchiveSurvivesCrashes: crashes between records, before, in and after checkpoints, before and after a file is
// there, another order of the topics each time, cuts elsewhere each time, newest checkpoints that cannot be used.
func TestArchiveSurvivesCrashes(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	want := lines(rows)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			counts := crashRun(t, seed, newArchiveSetup(t, seed%2 == 0), in, dir, seed%3 == 0)
			compareLines(t, archivedLines(t, dir), want)
			if counts[CountArchived] != int64(len(want)) {
				t.Errorf("%d rows counted, want %d", counts[CountArchived], len(want))
			}
			archiveConserves(t, counts, len(want), 0)
		})
	}
}

// sameAgain restores a checkpoint where nothing is published, and encodes it again.
func sameAgain(t *testing.T, s archiveSetup, saved []byte, fetch pipeline.Fetch) {
	t.Helper()
	s.archive.Publish = nil
	shard := s.shard()
	err := pipeline.RestoreCheckpoint(saved, shard.Sections(), fetch)
	if err != nil {
		t.Fatal(err)
	}
	again, err := pipeline.EncodeCheckpoint(shard.Sections())
	if err = errors.Join(err, shard.Close()); err != nil || !bytes.Equal(again.Data, saved) {
		t.Fatalf("a restored checkpoint of %d bytes encodes to another one of %d, %v", len(saved), len(again.Data), err)
	}
}

// TestArchiveFilesAreFunctionsOfTheRows: where the records come in the same order, files have the same names and bytes,
// wherever checkpoints were taken and the process died.
func TestArchiveFilesAreFunctionsOfTheRows(t *testing.T) {
	t.Parallel()
	_, in := archiveRows(t)
	contents := func(seed uint64) map[string][]byte {
		dir := t.TempDir()
		s := newArchiveSetup(t, true)
		s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
		r := rand.New(rand.NewPCG(seed, 8))
		shard := s.shard()
		next, saved, files := [2]int{}, []byte(nil), map[string][]byte{}
		for left := [2]int{len(in[0]), len(in[1])}; left[0]+left[1] > 0; left = [2]int{len(in[0]) - next[0],
			len(in[1]) - next[1]} {
			l := worldtest.InTurn(nil, left)
			if err := shard.Take(t.Context(), in[l][next[l]]); err != nil {
				t.Fatal(err)
			}
			next[l]++
			if seed == 0 {
				continue
			}
			if r.IntN(6) == 0 {
				c, err := pipeline.EncodeCheckpoint(shard.Sections())
				if err != nil {
					t.Fatal(err)
				}
				saved = c.Data
				for _, f := range c.Files {
					if files[f.Name], err = os.ReadFile(f.Path); err != nil {
						t.Fatal(err)
					}
				}
				if r.IntN(2) == 0 {
					archiveOf(shard).Durable()
				}
			}
			if r.IntN(15) == 0 && saved != nil {
				if err := shard.Close(); err != nil {
					t.Fatal(err)
				}
				fetch := func(name, path string) error { return os.WriteFile(path, files[name], 0o600) }
				sameAgain(t, s, saved, fetch)
				shard = s.shard()
				if err := pipeline.RestoreCheckpoint(saved, shard.Sections(), fetch); err != nil {
					t.Fatal(err)
				}
				next = [2]int{int(shard.Next()[0]), int(shard.Next()[1])}
				next[0], next[1] = max(next[0], 0), max(next[1], 0)
			}
		}
		if err := errors.Join(archiveOf(shard).Flush(t.Context()), shard.Close()); err != nil {
			t.Fatal(err)
		}
		out := map[string][]byte{}
		for _, path := range archiveFiles(t, dir) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(dir, path)
			out[rel] = b
		}
		return out
	}
	want := contents(0)
	for seed := uint64(1); seed < 6; seed++ {
		got := contents(seed)
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Fatalf("seed %d: files %v, want %v", seed, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				t.Errorf("seed %d: %s has other bytes", seed, name)
			}
		}
	}
}

// TestNamesOfALaterEpoch: the files of a state that was begun anew never have the names of those that are there, though
// their numbers and offsets are the same.
func TestNamesOfALaterEpoch(t *testing.T) {
	names := map[string]bool{}
	for range 3 {
		setup := newArchiveSetup(t, false)
		s := setup.shard()
		if len(names) > 0 {
			s.Outbox.OwnEpoch().Begin(pipeline.NewEpoch(), &record.Loss{})
		}
		o := archiveOf(s).newOpen(fileKey{k: 2, d: 1}, 0)
		names[o.file.Name()] = true
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 3 || !names["g-00000-0000000000-000000000000.arrow"] {
		t.Errorf("names %v", names)
	}
}
