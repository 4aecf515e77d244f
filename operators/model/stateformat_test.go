package model

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
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
// says that they are damaged, and a downgrade does. The bytes of a model's state have compressed snapshots, which are
// not always the same, so its hash is compared.
func TestStateFormats(t *testing.T) {
	if *update {
		w := halfway(t)
		writeState(t, "model", w.SavedModel)
		writeState(t, "hash", []byte(w.Hash()))
		writeState(t, "shard", w.Saved[0])
	}
	w := &world{World: &worldtest.World[*Task]{T: t, Model: new(formatSetup()).task()}}
	again := func(name string, sections []pipeline.Section) []byte {
		t.Helper()
		if err := pipeline.RestoreCheckpoint(readState(t, name), sections, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		now, err := pipeline.EncodeCheckpoint(sections)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return now.Data
	}
	again("model", w.Model.Sections())
	if got, want := w.Hash(), readState(t, "hash"); got != string(want) {
		t.Errorf("the state of a model has the hash %s, and had %s"+needsVersion, got, want)
	}
	if got := again("shard", new(formatSetup()).shard(0, 2).Sections()); !bytes.Equal(got, readState(t, "shard")) {
		t.Errorf("the state of a shard has other bytes" + needsVersion)
	}
}

const needsVersion = ": its section needs another version (modelSection for all stages, Stage of an operator); " +
	"docs/format.md has them, -update writes the states anew"

// TestOlderStates restores a state of each older version that the section of models still reads.
func TestOlderStates(t *testing.T) {
	task := new(formatSetup()).task()
	section := modelSection(task)
	if section.Oldest == 0 {
		return
	}
	for v := section.Oldest; v < section.Version; v++ {
		name := fmt.Sprintf("model-%d", v)
		if _, err := os.Stat(stateFile(name)); err != nil {
			t.Fatalf("%v: it is %s as it was when its section had version %d", err, stateFile("model"), v)
		}
		state, then := readState(t, name), section
		if then.Version, then.Oldest = v, 0; pipeline.CheckFormat(state, []pipeline.Section{then}) != nil {
			t.Errorf("%s has another version", stateFile(name))
		}
		if err := pipeline.RestoreCheckpoint(state, new(formatSetup()).task().Sections(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
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
