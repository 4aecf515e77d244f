package join

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
)

// TestTenMillionWait lets 10 M predictions of ten classes wait with the default configuration's bounds, saves and
// restores them, and joins them all: in under 1 GiB of resident memory. It takes about a minute and 1.2 GB of disk.
func TestTenMillionWait(t *testing.T) {
	if os.Getenv("PLUMBLINE_BIG") == "" {
		t.Skip("PLUMBLINE_BIG is not set: 10 M rows, 1.2 GB of disk")
	}
	const rows, batch, limit = 10_000_000, 10_000, 1 << 30
	base := testsize.Resident(t, "VmRSS")
	dir := t.TempDir()
	cfg := Options{Config: Config{Wait: time.Hour, MaxRows: rows, MemoryBytes: 32 << 20, Dir: dir, Remember: 1_000_000},
		Slices: []string{"region"}, Name: "shard"}
	counts := pipeline.NewCounts()
	j := New(cfg, host(counts))
	joined := 0
	emit := func(b *arrowio.Batch) (pipeline.Rejects, error) {
		if b.Kind == arrowio.Labelled {
			joined += b.N
		}
		return b.Reject, nil
	}
	feed := func(name string, b *arrowio.Batch) {
		t.Helper()
		start := time.Now()
		for at := 0; at < rows; at += batch {
			fillBatch(b, at)
			if _, err := j.Process(context.Background(), b, emit); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(start)
		t.Logf("%s: %.0f ns a row, %d MiB resident", name, float64(took.Nanoseconds())/rows,
			testsize.Resident(t, "VmRSS")>>20)
	}
	feed("predictions", predictionBatch(batch, 10))
	if n := counts.All()[pipeline.CountWaiting]; n != rows {
		t.Fatalf("%d wait, want %d", n, rows)
	}
	store := &dirstore.Store{Dir: t.TempDir(), Keep: 2}
	section := []pipeline.Section{counts.CheckpointSection(), {Name: "join", State: j, Files: j}}
	for n := uint64(1); n <= 2; n++ {
		start := time.Now()
		c, err := pipeline.EncodeCheckpoint(section)
		if err != nil {
			t.Fatal(err)
		}
		encoded := time.Since(start)
		if err := store.Save(context.Background(), "k", n, c); err != nil {
			t.Fatal(err)
		}
		t.Logf("checkpoint %d: %.1f MB and %d files, encoded in %v, saved in %v", n, float64(len(c.Data))/1e6,
			len(c.Files), encoded, time.Since(start)-encoded)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, section = nil, nil
	runtime.GC()
	start := time.Now()
	stored, err := store.Load(context.Background(), "k")
	if err != nil {
		t.Fatal(err)
	}
	data, err := stored[0].Read()
	if err != nil {
		t.Fatal(err)
	}
	counts = pipeline.NewCounts()
	j = New(cfg, host(counts))
	if err := pipeline.RestoreCheckpoint(data, []pipeline.Section{counts.CheckpointSection(),
		{Name: "join", State: j, Files: j}}, stored[0].Fetch); err != nil {
		t.Fatal(err)
	}
	t.Logf("restored in %v, %d MiB resident", time.Since(start), testsize.Resident(t, "VmRSS")>>20)
	feed("labels", labelBatch(batch))
	if joined != rows {
		t.Errorf("%d joined, want %d", joined, rows)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	peak := testsize.Resident(t, "VmHWM")
	t.Logf("peak %d MiB, %d MiB before", peak>>20, base>>20)
	if peak > limit {
		t.Errorf("peak of resident memory %d MiB, want at most %d", peak>>20, limit>>20)
	}
}

func predictionBatch(n, k int) *arrowio.Batch {
	return &arrowio.Batch{
		Kind:   arrowio.Predictions,
		N:      n,
		K:      k,
		IDs:    make([]arrowio.ID, n),
		TS:     make([]int64, n),
		Scores: make([]float32, n*k),
		Models: []arrowio.ModelKey{{Model: "m", Version: "1"}},
		Slices: []arrowio.SliceColumn{{Name: "region", Values: []string{"eu", "us", "ap"},
			Index: make([]int32, n)}},
	}
}

// labelBatch are labels that name the version.
func labelBatch(n int) *arrowio.Batch {
	b := predictionBatch(n, 0)
	b.Kind, b.Label, b.Scores, b.Slices = arrowio.Labels, make([]int32, n), nil, nil
	return b
}

// fillBatch gives the rows of a batch the ids and times from at on.
func fillBatch(b *arrowio.Batch, at int) {
	for i := range b.N {
		x := uint64(at+i) * 0x9E3779B97F4A7C15
		binary.LittleEndian.PutUint64(b.IDs[i][:], x)
		binary.LittleEndian.PutUint64(b.IDs[i][8:], x^x>>29)
		b.TS[i] = int64(at+i) * 1000
		for c := range b.Slices {
			b.Slices[c].Index[i] = int32(i % 3)
		}
	}
}

// TestCostOfRows compares what waiting rows and remembered ids take with docs/operations.md: of a row in memory
// 120 + 4K bytes, of one on disk 28 bytes of memory and 40 + 4K bytes of disk, of a remembered id 50 bytes.
func TestCostOfRows(t *testing.T) {
	testsize.Slow(t)
	const rows, batch, k = 600_000, 10_000, 10
	for _, c := range []struct {
		name         string
		memory       int // join.memory_bytes
		joined       bool
		bytes, files float64 // of a row
	}{
		{"in memory", 0, false, 120 + 4*k, 0},
		{"on disk", 1 << 20, false, 28, 40 + 4*k},
		{"remembered in memory", 0, true, 50, 0},
		{"remembered on disk", 1 << 20, true, 50, 26},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := Options{Config: Config{Wait: time.Hour, MaxRows: rows, MemoryBytes: c.memory, Dir: dir},
				Slices: []string{"region"}, Name: "shard"}
			if c.joined {
				cfg.Remember = rows
			}
			before := testsize.HeapInUse()
			j := New(cfg, host(pipeline.NewCounts()))
			predictions, labels := predictionBatch(batch, k), labelBatch(batch)
			emit := func(b *arrowio.Batch) (pipeline.Rejects, error) { return b.Reject, nil }
			for at := 0; at < rows; at += batch {
				for _, b := range []*arrowio.Batch{predictions, labels} {
					if b == labels && !c.joined {
						continue
					}
					fillBatch(b, at)
					if _, err := j.Process(context.Background(), b, emit); err != nil {
						t.Fatal(err)
					}
				}
			}
			predictions, labels = nil, nil
			bytes := (testsize.HeapInUse() - before - float64(c.memory)) / rows
			files := directoryBytes(t, dir) / rows
			t.Logf("%.0f bytes of memory and %.0f of disk a row, documented are %.0f and %.0f", bytes, files, c.bytes,
				c.files)
			if math.Abs(bytes-c.bytes) > .2*c.bytes || math.Abs(files-c.files) > .2*c.files {
				t.Errorf("%.0f bytes of memory and %.0f of disk a row, want %.0f and %.0f", bytes, files, c.bytes,
					c.files)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func directoryBytes(t *testing.T, dir string) (sum float64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += float64(info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestRowsOfManyLengthsStayInMemoryBytes: each message has rows of another length, by their classes or features, and no
// watermark comes. Memory keeps to join.memory_bytes all the same, and once the rows have gone to a small part of it.
func TestRowsOfManyLengthsStayInMemoryBytes(t *testing.T) {
	testsize.NoRace(t)
	const lengths, memory = 1000, 4 << 20
	for _, c := range []struct {
		name     string
		rows     int // of a message
		labelled int // of them, with the next message
		k, d     func(i int) int
	}{
		{"features", 1, 0, func(int) int { return 2 }, func(i int) int { return 2 * (i + 1) }},
		{"classes", 1, 0, func(i int) int { return i + 2 }, func(int) int { return 0 }},
		{"all rows but one join", 64, 63, func(i int) int { return i + 2 }, func(int) int { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := New(Options{Config: Config{Wait: time.Hour, MaxRows: 1 << 20, MemoryBytes: memory, Dir: t.TempDir()},
				Name: "shard", FeatureBytes: 2}, host(pipeline.NewCounts()))
			joined := 0
			process := func(b *arrowio.Batch) {
				if _, err := j.Process(t.Context(), b, func(b *arrowio.Batch) (pipeline.Rejects, error) {
					if b.Kind == arrowio.Labelled {
						joined += b.N
					}
					return b.Reject, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			before := testsize.HeapInUse()
			for i := range lengths {
				b := predictionBatch(c.rows, c.k(i))
				b.D = c.d(i)
				b.Features = make([]float32, c.rows*b.D)
				fillBatch(b, i*c.rows)
				process(b)
				if c.labelled > 0 {
					l := labelBatch(c.labelled)
					fillBatch(l, i*c.rows)
					process(l)
				}
			}
			j.dropBuilders()
			took := testsize.HeapInUse() - before
			t.Logf("%d rows wait, %.1f MB are counted, the heap has grown by %.1f MB", j.w.n.predictions,
				float64(j.w.bytes)/1e6, took/1e6)
			if took > 3*memory || joined != lengths*c.labelled {
				t.Errorf("the heap has grown by %.1f MB, %d rows have joined; want at most three times %.1f MB, and %d",
					took/1e6, joined, memory/1e6, lengths*c.labelled)
			}
			if err := j.Advance(t.Context(), math.MaxInt64, nil); err != nil {
				t.Fatal(err)
			}
			if j.w.pools.bytes != 0 || j.w.bytes != 0 {
				t.Errorf("when all rows have expired, slabs have %d bytes and %d are counted, want none",
					j.w.pools.bytes, j.w.bytes)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
