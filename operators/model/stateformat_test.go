package model

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

var update = flag.Bool("update", false, "write the states in testdata anew: only where a section has another version")

// formatSetup has most of what a state can hold.
func formatSetup() setup {
	s := alarmSetup(testAlarm(stage.SignalRaw))
	s.slices, s.model.SampleRows, s.model.SliceRows = []string{"region"}, 64, 64
	return s
}

// halfway is a world in the middle of a stream: rows wait, panes are open.
func halfway(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, formatSetup(), worldtest.Stream(t, episode(71, nil, 1200, 1.6), 2, 50), 1)
	for range 36 {
		w.Step(worldtest.AnyOrder)
	}
	for i := range w.Shards {
		w.SaveShard(i)
	}
	w.ReadPanes(len(w.Panes) - 3)
	w.SaveModel()
	return w
}

// TestStateFormats restores states that were written when their sections got the versions they have. A build that reads
// them otherwise than the one that wrote them needs other versions: else an upgrade takes wrong numbers from them, or
// says that they are damaged, and a downgrade does.
func TestStateFormats(t *testing.T) {
	if *update {
		w := halfway(t)
		writeState(t, "model", w.SavedModel)
		writeState(t, "shard", w.Saved[0])
	}
	s := formatSetup()
	for name, sections := range map[string][]pipeline.Section{"model": s.task().Sections(),
		"shard": s.shard(0, 2).Sections()} {
		was := readState(t, name)
		if err := pipeline.RestoreCheckpoint(was, sections, nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		now, err := pipeline.EncodeCheckpoint(sections)
		if err != nil || !bytes.Equal(now.Data, was) {
			t.Errorf("%s: a state of %d bytes is one of %d now (%v): its section needs another version; docs/format.md"+
				" has them, -update writes the states anew", name, len(was), len(now.Data), err)
		}
	}
}

func stateFile(name string) string { return filepath.Join("testdata", name+".checkpoint.gz") }

func writeState(t *testing.T, name string, state []byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(state)
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(stateFile(name), b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readState(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(stateFile(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
