package archive

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// TestManyOpenFilesStayInMemoryBytes: versions get their labels one after the other, each more than a record batch of
// them. What their open files hold is bounded by archive.memory_bytes all the same, though not many rows are left.
func TestManyOpenFilesStayInMemoryBytes(t *testing.T) {
	testsize.NoRace(t)
	const versions, d, rows, memory, most = 60, 768, 256, 4 << 20, 3 // times memory
	a := New(Options{Config: Config{Directory: "x", Features: FeaturesHalf, Logits: true, RollRows: 1 << 20,
		RollBytes: 256 << 20, RollTime: 10 * time.Minute, MemoryBytes: memory}, Dir: t.TempDir(), Name: "n",
		batchBytes: 1 << 20}, pipeline.Host{Counts: pipeline.NewCounts(), Log: quiet})
	b := &arrowio.Batch{Kind: arrowio.Labelled, N: rows, K: 10, D: d, Scores: make([]float32, rows*10),
		Features: make([]float32, rows*d), IDs: make([]arrowio.ID, rows), TS: make([]int64, rows),
		Label: make([]int32, rows)}
	b.LabelTS = b.TS
	n, before := 0, testsize.HeapInUse()
	for v := range versions {
		b.Models = []arrowio.ModelKey{{Model: "m", Version: fmt.Sprint(v)}}
		for range 3 { // 1.2 MB
			for i := range b.IDs {
				n++
				binary.BigEndian.PutUint64(b.IDs[i][:], uint64(n))
			}
			if _, err := a.Process(t.Context(), b, func(b *arrowio.Batch) (pipeline.Rejects, error) {
				return nil, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	took := testsize.HeapInUse() - before
	t.Logf("%d open files hold %.1f MB, %.1f MB of them rows", len(a.order), took/1e6, float64(a.bytes)/1e6)
	if took > most*memory || len(a.order) != versions {
		t.Errorf("%d open files hold %.1f MB, want %d and at most %d times %.1f MB", len(a.order), took/1e6, versions,
			most, memory/1e6)
	}
	if a.kept == 0 {
		t.Error("no file keeps its memory, want some")
	}
	for len(a.order) > 0 {
		if err := a.complete(t.Context(), a.order[0]); err != nil {
			t.Fatal(err)
		}
	}
	if a.kept != 0 || a.bytes != 0 {
		t.Errorf("without open files %d bytes are kept and %d counted, want none", a.kept, a.bytes)
	}
	if left := testsize.HeapInUse() - before; left > memory/8 || len(a.queue.files) != versions {
		t.Errorf("%d files to be published hold %.1f MB, want %d and next to none", len(a.queue.files), left/1e6,
			versions)
	}
	runtime.KeepAlive(b)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}
