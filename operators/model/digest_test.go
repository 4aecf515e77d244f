package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestRefitsHaveDigests: a decision about fits has the digest of their rows and the time they began. The same rows on
// other shards give the same digest.
func TestRefitsHaveDigests(t *testing.T) {
	rows := batchtest.Rows(42, batchtest.Options{N: 3000, MaxLag: 5 * second, Sharpness: 2})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Refit.Method = "auto"
	var first []string
	for _, shards := range []int{1, 3} {
		w := newWorld(t, s, worldtest.Stream(t, rows, shards, 50), 1).run(worldtest.AnyOrder)
		var all []string
		for _, stream := range []pipeline.Stream{pipeline.StreamCalibrators, pipeline.StreamDecisions} {
			for _, d := range worldtest.DecodeAll[record.Calibrator](t, w.Outputs, stream) {
				e := d.Evidence
				if d.Reason == "rollback" || len(e.Candidates) == 0 {
					continue
				}
				if hash, ok := strings.CutPrefix(e.FitDigest, stage.DigestPrefix); !ok || len(hash) != 64 ||
					e.FitBegan.After(d.DecidedAt) || e.FitTo.After(e.FitBegan) {
					t.Errorf("decision of %s: fit of %q begun %s, on rows up to %s", d.DecidedAt, e.FitDigest,
						e.FitBegan, e.FitTo)
				}
				all = append(all, d.DecidedAt.String()+" "+e.FitDigest)
			}
		}
		if len(all) < 3 {
			t.Fatalf("%d decisions with fits", len(all))
		}
		if shards == 1 {
			first = all
		} else if !slices.Equal(all, first) {
			t.Errorf("digests on %d shards:\n%s\non one:\n%s", shards, strings.Join(all, "\n"),
				strings.Join(first, "\n"))
		}
	}
}
