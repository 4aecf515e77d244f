package stats

import (
	"strconv"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// TestStatsPoolIsBoundedInBytes: sets that a burst has made large are not all kept, and the account is exact when they
// are taken out again.
func TestStatsPoolIsBoundedInBytes(t *testing.T) {
	const classes = 20_000
	z := make([]float32, classes) // one sampled row of so many takes more than maxPooledBytes/maxPooled
	s := New(Options{Pane: 10, MaxKeys: 10}, pipeline.Host{Outbox: pipeline.NewOutbox(0, 1, 10, 1),
		Counts: pipeline.NewCounts()})
	for i := range maxPooled {
		s.keys.add(sliceKey{model: arrowio.ModelKey{Version: strconv.Itoa(i)}, classes: classes})
	}
	held := func() (n int) {
		for _, sets := range s.pool {
			for _, set := range sets {
				n += set.Memory()
			}
		}
		return n
	}
	var all int
	for range maxPooled {
		set, err := acc.New(acc.Config{K: classes, SampleRows: 4, SampleBytes: 1 << 20})
		if err == nil {
			err = set.AddSample(acc.SampleRow{W: 1, Z: z})
		}
		if err != nil {
			t.Fatal(err)
		}
		all += set.Memory()
		s.recycle(classes, set)
	}
	if all <= maxPooledBytes {
		t.Fatalf("%d sets take %d bytes, the test needs more than %d", maxPooled, all, maxPooledBytes)
	}
	kept := len(s.pool[classes])
	if n := held(); n > maxPooledBytes || n != s.pooledBytes || kept == 0 {
		t.Errorf("%d sets of %d bytes are kept, accounted as %d; want some, at most %d bytes", kept, n, s.pooledBytes,
			maxPooledBytes)
	}
	for i := range kept {
		if _, _, err := s.cell(cellKey{key: int32(i)}, classes); err != nil {
			t.Fatal(err)
		}
	}
	if s.pooledBytes != 0 || len(s.pool[classes]) != 0 {
		t.Errorf("%d sets are left in the pool, %d bytes; want none", len(s.pool[classes]), s.pooledBytes)
	}
}
