package kafkaio

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/filesum"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// withFiles is a checkpoint that refers to files with these contents, named by either hash.
func withFiles(t *testing.T, contents ...string) pipeline.Checkpoint {
	t.Helper()
	c := pipeline.Checkpoint{Data: fmt.Append(nil, "of ", len(contents))}
	dir := t.TempDir()
	for _, s := range contents {
		sum := sha256.Sum256([]byte(s))
		if len(s)%2 == 1 {
			sum = filesum.Fast([]byte(s))
		}
		f := pipeline.File{Name: hex.EncodeToString(sum[:]), Bytes: int64(len(s))}
		f.Path = filepath.Join(dir, f.Name)
		if err := os.WriteFile(f.Path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		c.Files = append(c.Files, f)
	}
	return c
}

// fetched reads the files of the newest checkpoint as another process does.
func fetched(t *testing.T, s *Store, c pipeline.Checkpoint) error {
	t.Helper()
	stored, err := s.Load(t.Context(), "k")
	if err != nil || len(stored) == 0 {
		t.Fatalf("%d checkpoints, %v", len(stored), err)
	}
	if data, err := stored[0].Read(); err != nil || !bytes.Equal(data, c.Data) {
		t.Fatalf("read %q, %v, want %q", data, err, c.Data)
	}
	for _, f := range c.Files {
		want, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), f.Name)
		if err := stored[0].Fetch(f.Name, path); err != nil {
			return err
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("file %s: %d bytes, %v, want %d", f.Name, len(got), err, len(want))
		}
	}
	return nil
}

// end is the offset after the last record of a partition.
func end(t *testing.T, brokers []string, partition int) int64 {
	t.Helper()
	_, end, err := Bounds(t.Context(), newClient(t, brokers), "checkpoints", partition)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestStoreFiles(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	long := strings.Repeat("x", 20_000) // four chunks
	s := newStore(t, brokers, 10_000)
	for i, step := range []struct {
		files   []string
		records int // written: chunks, and a tombstone for each that goes
		live    int // chunks of files and of two checkpoints, two claims
	}{
		{[]string{"a", long}, 1 + 5, 1 + 5 + 1},
		{[]string{long, "c"}, 1 + 1, 2 + 6 + 2},
		{[]string{"c"}, 1 + 1 + 1, 2 + 5 + 2}, // without a
		{nil, 1 + 1 + 4, 2 + 1 + 2},           // without the long one
		{nil, 1 + 1 + 1, 2 + 2},
		{[]string{"", "a"}, 1 + 1 + 1, 2 + 1 + 2}, // an empty file has no chunk
	} {
		c := withFiles(t, step.files...)
		before := end(t, brokers, 1)
		if err := s.Save(t.Context(), "k", uint64(i+1), c); err != nil {
			t.Fatal(err)
		}
		if got := end(t, brokers, 1) - before; got != int64(step.records) {
			t.Errorf("checkpoint %d: %d records written, want %d", i+1, got, step.records)
		}
		if got := live(t, brokers, 2); got != step.live {
			t.Errorf("checkpoint %d: %d records without a tombstone, want %d", i+1, got, step.live)
		}
		if i%2 == 1 { // another process goes on: what it has read it need not write
			s = newStore(t, brokers, 10_000)
		}
		if err := fetched(t, s, c); err != nil {
			t.Errorf("checkpoint %d: %v", i+1, err)
		}
	}
}

// TestStoreFilesOfTheWinnerStay: a writer that has lost takes back its own files only, those of the same name included.
func TestStoreFilesOfTheWinnerStay(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	one, two := newStore(t, brokers, 1<<20), newStore(t, brokers, 1<<20)
	first := withFiles(t, "a")
	if err := one.Save(t.Context(), "k", 1, first); err != nil {
		t.Fatal(err)
	}
	if err := fetched(t, two, first); err != nil {
		t.Fatal(err)
	}
	second := withFiles(t, "a", "b")
	if err := two.Save(t.Context(), "k", 2, second); err != nil {
		t.Fatal(err)
	}
	if err := one.Save(t.Context(), "k", 2, withFiles(t, "a", "b", "z")); !errors.Is(err, pipeline.ErrFenced) {
		t.Fatalf("got %v, want ErrFenced", err)
	}
	if err := fetched(t, newStore(t, brokers, 1<<20), second); err != nil {
		t.Error(err)
	}
	if got, want := live(t, brokers, 2), 2+2+2; got != want { // two claims, a chunk each, two files
		t.Errorf("%d records without a tombstone, want %d", got, want)
	}
}

func TestStoreFilesThatCannotBeRead(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	s := newStore(t, brokers, 1<<20)
	c := withFiles(t, "a")
	if err := s.Save(t.Context(), "k", 1, c); err != nil {
		t.Fatal(err)
	}
	known := s.known["k"]
	at := known.files[c.Files[0].Name]
	path := filepath.Join(t.TempDir(), "x")
	other := at
	other.Name = strings.Repeat("0", 64)
	if err := s.fetchFile(t.Context(), known, other, path); err == nil ||
		!strings.Contains(err.Error(), "is not at offset") {
		t.Errorf("a file of another name: %v", err)
	}
	at.Chunks = append(at.Chunks, at.Chunks...)
	if err := s.fetchFile(t.Context(), known, at, path); err == nil {
		t.Error("a file with a chunk too many was taken")
	}
	if err := os.Remove(c.Files[0].Path); err != nil {
		t.Fatal(err)
	}
	if err := newStore(t, brokers, 1<<20).Save(t.Context(), "k", 2, c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone before it was kept: %v", err)
	}
}

// TestStoreOfATopicMadeAgain: the topic is deleted and made again, or gets partitions, under a process. From the next
// checkpoint on another process can restore its state, with files that were written before.
func TestStoreOfATopicMadeAgain(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, brokers []string, c *kafka.Client){
		"made again": func(t *testing.T, brokers []string, c *kafka.Client) {
			gone := &kafka.DeleteTopicsRequest{Topics: []string{"checkpoints"}}
			if _, err := c.DeleteTopics(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			kafkatest.CreateTopics(t, brokers, 3, "checkpoints")
		},
		"more partitions": func(t *testing.T, _ []string, c *kafka.Client) {
			res, err := c.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
				Topics: []kafka.TopicPartitionsConfig{{Name: "checkpoints", Count: 6}}})
			if err != nil || res.Errors["checkpoints"] != nil {
				t.Fatal(err, res)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := kafkatest.Start(t)
			kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
			s, c := newStore(t, brokers, 10_000), withFiles(t, "a", strings.Repeat("x", 20_000))
			s.every = 0
			if err := s.Save(t.Context(), "k", 1, c); err != nil {
				t.Fatal(err)
			}
			change(t, brokers, newClient(t, brokers))
			if name == "made again" { // a task that has nothing new is told, too
				eventually.True(t, "lost", func() bool { return s.Lost("k") })
			}
			if err := s.Save(t.Context(), "k", 2, c); err != nil {
				t.Fatal(err)
			}
			next := newStore(t, brokers, 10_000)
			if err := fetched(t, next, c); err != nil {
				t.Fatal(err)
			}
			if err := next.Save(t.Context(), "k", 3, c); err != nil {
				t.Fatal(err)
			}
			if err := fetched(t, newStore(t, brokers, 10_000), c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStoreWithdraws: a checkpoint that fails before its claim leaves nothing in the topic, however often it is tried.
func TestStoreWithdraws(t *testing.T) {
	ctx, brokers := t.Context(), kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	s := newStore(t, brokers, 10_000)
	good := withFiles(t, "kept")
	if err := s.Save(ctx, "k", 1, good); err != nil {
		t.Fatal(err)
	}
	before := live(t, brokers, 2)
	refused, absent := withFiles(t, "kept", "more"), withFiles(t, "kept", "another")
	refused.Journal, refused.Ready = []byte("order"), func() error { return errors.New("refused") }
	absent.Files = append(absent.Files, pipeline.File{Name: "absent", Path: filepath.Join(t.TempDir(), "absent")})
	for range 3 {
		for what, cp := range map[string]pipeline.Checkpoint{"outputs refused": refused, "no file": absent} {
			if _, err := s.Load(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			if err := s.Save(ctx, "k", 2, cp); err == nil {
				t.Fatalf("%s: saved", what)
			}
			if n := live(t, brokers, 2); n != before {
				t.Errorf("%s: %d records without a tombstone, before %d", what, n, before)
			}
		}
	}
	if err := fetched(t, s, good); err != nil {
		t.Error(err)
	}
}
