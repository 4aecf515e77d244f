package archive

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	sinkarchive "github.com/plumbline/plumbline/sinks/archive"
)

// TestArchiveOverColumns changes the slice columns at restarts, amid files: every row is archived once, with the value
// of its own column, and no file has rows of two configurations.
func TestArchiveOverColumns(t *testing.T) {
	rows, in := archiveRows(t)
	dir := t.TempDir()
	s := newArchiveSetup(t, false)
	s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
	shard := s.shard()
	r := rand.New(rand.NewPCG(3, 3))
	taken, ended := 0, 0
	for rec := range in.Records(r, worldtest.AnyOrder) {
		if err := shard.Take(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		archiveOf(shard).queue.showAll()
		if taken++; taken%20 != 0 {
			continue
		}
		columns := [][]string{{"region"}, {"tier", "region"}, {"region", "zone"}}[(taken/20-1)%3]
		s.join.Slices, s.archive.Slices = columns, columns
		c, err := pipeline.EncodeCheckpoint(shard.Sections())
		if err != nil {
			t.Fatal(err)
		}
		paths := map[string]string{}
		for _, f := range c.Files {
			paths[f.Name] = f.Path
		}
		to := s.shard()
		if err := pipeline.RestoreCheckpoint(c.Data, to.Sections(), func(name, path string) error {
			data, err := os.ReadFile(paths[name])
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		}); err != nil {
			t.Fatal(err)
		}
		if err := shard.Close(); err != nil {
			t.Fatal(err)
		}
		shard = to
		a := archiveOf(shard)
		ended += len(a.order) - len(a.open)
	}
	if err := archiveOf(shard).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	compareLines(t, archivedLines(t, dir), lines(rows))
	if ended < 3 {
		t.Errorf("%d files were open when the columns changed: the test tests little", ended)
	}
	if err := shard.Close(); err != nil {
		t.Fatal(err)
	}
}
