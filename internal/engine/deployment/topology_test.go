package deployment

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// shapes is a topology of so many partitions; id is that of panes.
func shapes(logits, labels, panes int, id byte) topology {
	return topology{{key: "logits", name: "l", partitions: logits}, {key: "labels", name: "y", partitions: labels},
		{key: "panes", name: "p", partitions: panes, id: kafkaio.TopicID{id}}}
}

// TestTopologyIsThatOfTheFirstStart: the numbers of partitions that tasks are made for stay, a topic that was made
// again or has another name is refused, and a record that cannot be read is replaced.
func TestTopologyIsThatOfTheFirstStart(t *testing.T) {
	dir := t.TempDir()
	r := topologyRecord{&dirstore.Store{Dir: dir, Keep: 1}, "g", slog.New(slog.DiscardHandler)}
	check := func(now topology, want string) topology {
		t.Helper()
		got, err := r.check(t.Context(), now, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", now, err, want)
		}
		return got
	}
	check(shapes(4, 3, 2, 1), "need the same number")
	first := check(shapes(4, 4, 2, 1), "")
	if got := check(shapes(6, 6, 3, 0), ""); got != first { // of a broker that tells no ids
		t.Errorf("%+v after topics have grown, want %+v", got, first)
	}
	check(shapes(4, 4, 2, 9), "deleted and made again")
	other := shapes(4, 4, 2, 1)
	other[1].name = "z"
	check(other, `topics.labels is "z"`)
	files, err := filepath.Glob(filepath.Join(dir, "g", "topology", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Truncate(files[0], 5); err != nil {
		t.Fatal(err)
	}
	if now := check(shapes(6, 6, 2, 9), ""); now != shapes(6, 6, 2, 9) || check(shapes(7, 7, 2, 9), "") != now {
		t.Error("a damaged record is not replaced")
	}
}

// busyStore is a store whose files give an error.
type busyStore struct {
	pipeline.CheckpointStore
	err error
}

func (s busyStore) Load(ctx context.Context, key string) ([]pipeline.Stored, error) {
	stored, err := s.CheckpointStore.Load(ctx, key)
	for i := range stored {
		stored[i].Read = func() ([]byte, error) {
			return nil, &fs.PathError{Op: "open", Path: stored[i].Name, Err: s.err}
		}
	}
	return stored, err
}

// TestTopologyThatCannotBeReadNow: a start on a machine that cannot read the record fails. It does not make the tasks
// of as many partitions as the topics have now.
func TestTopologyThatCannotBeReadNow(t *testing.T) {
	store := &dirstore.Store{Dir: t.TempDir(), Keep: 1}
	log := slog.New(slog.DiscardHandler)
	r := topologyRecord{store, "g", log}
	first, err := r.check(t.Context(), shapes(4, 4, 2, 1), false)
	if err != nil {
		t.Fatal(err)
	}
	grown := shapes(6, 6, 3, 1)
	for _, e := range []error{syscall.EMFILE, syscall.ESTALE, syscall.EIO} {
		if now, err := (topologyRecord{busyStore{store, e}, "g", log}).check(t.Context(), grown, false); err == nil {
			t.Errorf("%v: started with %+v", e, now)
		}
	}
	if now, err := r.check(t.Context(), grown, false); err != nil || now != first {
		t.Errorf("%+v afterwards, want %+v (%v)", now, first, err)
	}
}

// TestDeploymentFromOutside: commands and processes see the same plan and topics, and learn that one was made again.
func TestDeploymentFromOutside(t *testing.T) {
	brokers := kafkatest.Start(t)
	cfg := config.Default()
	cfg.Kafka.Brokers, cfg.Checkpoints.Dir = brokers, t.TempDir()
	kafkatest.CreateTopics(t, brokers, 3, cfg.Topics.Logits, cfg.Topics.Labels)
	kafkatest.CreateTopics(t, brokers, 2, cfg.Topics.Panes)
	log := slog.New(slog.DiscardHandler)
	if err := New(&cfg, log).Scale(t.Context(), ScaleOrder{Partitions: 6}, nil); !errors.Is(err, scale.ErrOrder) {
		t.Errorf("more shards of what has never run: %v", err)
	}
	d := New(&cfg, log)
	if err := d.Connect(); err != nil {
		t.Fatal(err)
	}
	if err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.Plan().Of != 3 || d.Panes() != 2 || Growth(t.Context(), d.Book) != nil {
		t.Errorf("%d shards, %d model tasks, want 3 and 2", d.Plan().Of, d.Panes())
	}
	if err := errors.Join(d.MadeAgain(t.Context()), d.Confirmed.Now(t.Context())); err != nil {
		t.Error(err)
	}
	d.topics[2].id[0]++ // as of a start on another topic of that name
	for _, err := range []error{d.MadeAgain(t.Context()), d.Confirmed.Now(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), cfg.Topics.Panes) {
			t.Errorf("made again: %v", err)
		}
	}
}
