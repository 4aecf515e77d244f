package archive_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/operators/archive"
	"github.com/plumbline/plumbline/pipeline"
)

// batch are labelled rows of a version: a label time each, in seconds, and features but for rows at times below 0.
func batch(version string, at ...int64) *arrowio.Batch {
	b := &arrowio.Batch{Kind: arrowio.Labelled, N: len(at), K: 2, D: 1,
		Models: []arrowio.ModelKey{{Model: "m", Version: version}}}
	for i, s := range at {
		x := float32(i)
		if s < 0 {
			x, s = float32(math.NaN()), -s
		}
		ts := s * int64(time.Second)
		b.IDs, b.TS, b.LabelTS = append(b.IDs, arrowio.ID{byte(i)}), append(b.TS, ts), append(b.LabelTS, ts)
		b.Scores, b.Label, b.Features = append(b.Scores, 1, 0), append(b.Label, 1), append(b.Features, x)
	}
	return b
}

// TestWhatMakesAFile: rows go to the file of their version, which ends at its bound of rows or of time.
func TestWhatMakesAFile(t *testing.T) {
	unknown := batch("v1", 1, 2)
	unknown.Label = []int32{-1, 1}
	rejected := batch("v1", 1, 2)
	rejected.Reject = []string{arrowio.LabelRange, ""}
	for _, c := range []struct {
		name      string
		batches   []*arrowio.Batch
		watermark int64 // in seconds, after each batch; 0: none
		want      []string
		skipped   int64
	}{
		{"one file", []*arrowio.Batch{batch("v1", 1, 2, 3)}, 0, []string{"v1: 3 rows"}, 0},
		{"a full file", []*arrowio.Batch{batch("v1", 1, 2, 3, 4, 5, 6)}, 0, []string{"v1: 4 rows", "v1: 2 rows"}, 0},
		{"two versions", []*arrowio.Batch{batch("v1", 1), batch("v2", 2), batch("v1", 3)}, 0,
			[]string{"v1: 2 rows", "v2: 1 rows"}, 0},
		{"its time is over", []*arrowio.Batch{batch("v1", 1), batch("v1", 2)}, 100,
			[]string{"v1: 1 rows", "v1: 1 rows"},
			0},
		{"rows without features", []*arrowio.Batch{batch("v1", 1, -2, -3)}, 0, []string{"v1: 1 rows"}, 2},
		{"rows without labels", []*arrowio.Batch{unknown}, 0, []string{"v1: 1 rows"}, 0},
		{"rejected rows", []*arrowio.Batch{rejected}, 0, []string{"v1: 1 rows"}, 0},
		{"nothing", nil, 0, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			counts := pipeline.NewCounts()
			a := archive.New(archive.Options{Config: archive.Config{Features: archive.FeaturesSingle, Logits: true,
				RollRows: 4, RollBytes: 1 << 20, RollTime: 50 * time.Second}, Group: "g", Name: "a", Dir: t.TempDir(),
				Publish: func(_ context.Context, f *archivefile.File) error {
					got = append(got, fmt.Sprintf("%s: %d rows", f.Version, f.Rows))
					return nil
				}}, pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts, Log: slog.New(slog.DiscardHandler)})
			for _, b := range c.batches {
				passed := false
				_, err := a.Process(t.Context(), b, func(next *arrowio.Batch) (pipeline.Rejects, error) {
					passed = next == b
					return nil, nil
				})
				if err == nil && c.watermark > 0 {
					err = a.Advance(t.Context(), c.watermark*int64(time.Second), nil)
				}
				if err != nil || !passed {
					t.Fatalf("%v; the batch is passed on: %t", err, passed)
				}
			}
			if err := a.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("files %q, want %q", got, c.want)
			}
			if n := counts.All()[archive.CountArchiveSkipped+":"+archive.ReasonNoFeatures]; n != c.skipped {
				t.Errorf("%d rows are skipped, want %d", n, c.skipped)
			}
		})
	}
}
