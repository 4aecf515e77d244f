package archive

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	sinkarchive "github.com/plumbline/plumbline/sinks/archive"
)

// takeAll gives a shard all records of the lanes, labels last.
func takeAll(ctx context.Context, t *testing.T, shard *pipeline.Shard, in worldtest.Lanes) error {
	t.Helper()
	for l := range in {
		for int(max(shard.Next()[pipeline.Input(l)], 0)) < len(in[l]) {
			if err := shard.Take(ctx, in[l][max(shard.Next()[pipeline.Input(l)], 0)]); err != nil {
				return err
			}
			archiveOf(shard).queue.showAll()
		}
	}
	return nil
}

// TestArchiveWaitsForRoom: where batches cannot be written the shard waits and loses nothing; a shard that is told to
// stop meanwhile says so, with an error that lets nobody take a checkpoint of a message taken half.
func TestArchiveWaitsForRoom(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	dir, blocked := t.TempDir(), filepath.Join(t.TempDir(), "work")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil { // a file where the directory is to be
		t.Fatal(err)
	}
	s := newArchiveSetup(t, true)
	s.archive.Dir = blocked
	s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	stopped := s.shard()
	if err := takeAll(ctx, t, stopped, in); !errors.Is(err, errStopped) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, errStopped)
	}
	if err := stopped.Close(); err != nil {
		t.Fatal(err)
	}
	shard := s.shard()
	time.AfterFunc(100*time.Millisecond, func() { _ = os.Remove(blocked) })
	if err := errors.Join(takeAll(t.Context(), t, shard, in), archiveOf(shard).Flush(t.Context()),
		shard.Close()); err != nil {
		t.Fatal(err)
	}
	compareLines(t, archivedLines(t, dir), lines(rows))
}

// TestArchiveDropsWithoutRoom: with the other policy the shard goes on, and every row is in one count.
func TestArchiveDropsWithoutRoom(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	dir, blocked := t.TempDir(), filepath.Join(t.TempDir(), "work")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newArchiveSetup(t, true)
	s.archive.Dir, s.archive.WhenFull = blocked, WhenFullDrop
	s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
	shard := s.shard()
	labels := in[1]
	in[1] = labels[:len(labels)/2]
	if err := takeAll(t.Context(), t, shard, in); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	in[1] = labels
	if err := errors.Join(takeAll(t.Context(), t, shard, in), archiveOf(shard).Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	counts, want := shard.Counts.All(), lines(rows)
	got := archivedLines(t, dir)
	if int64(len(got)) != counts[CountArchived] ||
		counts[CountArchived]+counts[CountArchiveDropped] != int64(len(want)) || counts[CountArchiveDropped] == 0 ||
		len(got) == 0 {
		t.Errorf("%d rows in the archive, counts %v, want %d in all", len(got), counts, len(want))
	}
	archiveConserves(t, counts, len(got), 0)
	if err := shard.Close(); err != nil {
		t.Fatal(err)
	}
}

// archiveConserves checks that the counts add up, those of archived rows too.
func archiveConserves(t *testing.T, counts map[string]int64, published, waiting int) {
	t.Helper()
	// by stats, which is not here
	counts[pipeline.CountLabelled] = counts[pipeline.CountInline] + counts[pipeline.CountJoined]
	if n, detail := pipeline.Unaccounted(counts); n != 0 {
		t.Errorf("the counts do not add up: %s; %v", detail, counts)
	}
	if got := counts[pipeline.CountArchivePublished]; got != int64(published) {
		t.Errorf("%d rows are counted as published, want %d", got, published)
	}
	if got := counts[pipeline.CountArchiveMemory] + counts[pipeline.CountArchiveDisk]; got != int64(waiting) {
		t.Errorf("%d rows are counted as waiting for their file, want %d", got, waiting)
	}
}

// TestArchiveBacklog: complete files that cannot be published hold the shard back beyond a bound, or rows are dropped.
func TestArchiveBacklog(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	for _, drop := range []bool{false, true} {
		dir := t.TempDir()
		s := newArchiveSetup(t, true)
		s.archive.PendingBytes = 3000
		if drop {
			s.archive.WhenFull = WhenFullDrop
		}
		var broken atomic.Bool
		broken.Store(true)
		archive := sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet})
		s.archive.Publish = func(ctx context.Context, f *archivefile.File) error {
			if broken.Load() {
				return errors.New("no space left on device")
			}
			return archive.Publish(ctx, f)
		}
		shard := s.shard()
		if !drop {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if err := takeAll(ctx, t, shard, in); !errors.Is(err, errStopped) {
				t.Errorf("got %v, want %v", err, errStopped)
			}
			cancel()
			if err := shard.Close(); err != nil {
				t.Fatal(err)
			}
			shard = s.shard()
			time.AfterFunc(100*time.Millisecond, func() { broken.Store(false) })
		}
		if err := takeAll(t.Context(), t, shard, in); err != nil {
			t.Fatal(err)
		}
		broken.Store(false)
		if err := archiveOf(shard).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		counts, got, want := shard.Counts.All(), archivedLines(t, dir), lines(rows)
		if n := counts[CountArchiveDropped]; int64(len(got)) != counts[CountArchived] ||
			int64(len(got))+n != int64(len(want)) || (n > 0) != drop {
			t.Errorf("drop %v: %d rows in the archive, counts %v, want %d in all", drop, len(got), counts, len(want))
		}
		archiveConserves(t, counts, len(got), 0)
		if err := shard.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedFileIsSetAside: a file whose bytes have changed on disk is never right again: its rows are lost, and
// counted, its segments are kept under another name, and all other files are published.
func TestDamagedFileIsSetAside(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	dir := t.TempDir()
	s := newArchiveSetup(t, true)
	var log bytes.Buffer
	damaged := atomic.Pointer[archivefile.File]{}
	archive := sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet})
	s.archive.Publish = func(ctx context.Context, f *archivefile.File) error {
		if damaged.CompareAndSwap(nil, f) {
			data, err := os.ReadFile(f.Segments[0].Path)
			data[len(data)/2] ^= 1
			if err = errors.Join(err, os.WriteFile(f.Segments[0].Path, data, 0o600)); err != nil {
				t.Error(err)
			}
		}
		return archive.Publish(ctx, f)
	}
	shard := s.shard()
	a := archiveOf(shard)
	a.queue.log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := errors.Join(takeAll(ctx, t, shard, in), a.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := shard.Close(); err != nil {
		t.Fatal(err)
	}
	f, counts, got, want := damaged.Load(), shard.Counts.All(), archivedLines(t, dir), lines(rows)
	if lost := counts[pipeline.CountArchiveLost]; lost != f.Rows || int64(len(got))+lost != int64(len(want)) {
		t.Errorf("%d rows in the archive, %d lost of a file of %d, want %d in all", len(got), lost, f.Rows, len(want))
	}
	archiveConserves(t, counts, len(got), 0)
	if !archive.Totals().FailingSince.IsZero() {
		t.Error("the archive counts as failing: the others can be written")
	}
	if n := strings.Count(log.String(), f.Name()+".damaged"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
	for _, g := range f.Segments {
		if st, err := os.Stat(filepath.Join(s.archive.Dir, f.Name()+".damaged", g.Name)); err != nil ||
			st.Size() != g.Bytes {
			t.Errorf("segment %s: %v", g.Name, err)
		}
	}
}

// TestArchiveTurnedOn: a shard whose checkpoint has no archive, and no features that wait, goes on with one: rows that
// waited before have no features, and are counted.
func TestArchiveTurnedOn(t *testing.T) {
	t.Parallel()
	rows, in := archiveRows(t)
	dir := t.TempDir()
	s := newArchiveSetup(t, true)
	s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
	off := s
	off.join.FeatureBytes = 0
	before := off.shard()
	before.Stages = before.Stages[:2]
	for _, r := range in[0][:len(in[0])/2] {
		if err := before.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	c, err := pipeline.EncodeCheckpoint(before.Sections())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range c.Files {
		if files[f.Name], err = os.ReadFile(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	shard := s.shard()
	if err := pipeline.RestoreCheckpoint(c.Data, shard.Sections(), func(name, path string) error {
		return os.WriteFile(path, files[name], 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(takeAll(t.Context(), t, shard, in), archiveOf(shard).Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	counts := shard.Counts.All()
	labelled := int64(len(batchtest.ByLabelTime(rows)))
	inline := before.Counts.All()[pipeline.CountInline]
	if got := int64(len(archivedLines(t, dir))); got != counts[CountArchived] || got == 0 ||
		got+counts[CountArchiveSkipped+":"+ReasonNoFeatures] != labelled-inline {
		t.Errorf("%d rows in the archive, counts %v, want %d in all", got, counts, labelled-inline)
	}
	if got := counts[pipeline.CountArchiveOff]; got != inline || got == 0 {
		t.Errorf("%d rows came while there was no archive, want %d", got, inline)
	}
	archiveConserves(t, counts, len(archivedLines(t, dir)), 0)
	// And off again: what waits loses its features.
	c, err = pipeline.EncodeCheckpoint(shard.Sections())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Files {
		if files[f.Name], err = os.ReadFile(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	after := off.shard()
	after.Stages = after.Stages[:2]
	if err := pipeline.RestoreCheckpoint(c.Data, after.Sections(), func(name, path string) error {
		return os.WriteFile(path, files[name], 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(before.Close(), shard.Close(), after.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveTurnedOff: rows that wait for their file when the archive is turned off are lost, and counted; turned on
// again, or restored from a state that did not tell what had become of them, the counts add up.
func TestArchiveTurnedOff(t *testing.T) {
	t.Parallel()
	_, in := archiveRows(t)
	dir := t.TempDir()
	s := newArchiveSetup(t, true)
	s.archive.Publish = sinkarchive.New(sinkarchive.Config{Dir: dir, Log: quiet}).Publish
	shard := s.shard()
	half := worldtest.Lanes{in[0], in[1][:len(in[1])/2]}
	if err := takeAll(t.Context(), t, shard, half); err != nil {
		t.Fatal(err)
	}
	a := archiveOf(shard)
	a.queue.showAll()
	if err := a.queue.empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.queue.count()
	published := len(archivedLines(t, dir))
	counts := shard.Counts.All()
	memory, disk := int(counts[pipeline.CountArchiveMemory]), int(counts[pipeline.CountArchiveDisk])
	if published == 0 || memory == 0 || disk == 0 {
		t.Fatalf("%d rows published, %d wait in memory and %d on disk: the test needs all", published, memory, disk)
	}
	archiveConserves(t, counts, published, memory+disk)
	restored := func(from *pipeline.Shard, archive bool) *pipeline.Shard {
		c, err := pipeline.EncodeCheckpoint(from.Sections())
		if err != nil {
			t.Fatal(err)
		}
		to := s.shard()
		if !archive {
			to.Stages = to.Stages[:2]
		}
		paths := map[string]string{}
		for _, f := range c.Files {
			paths[f.Name] = f.Path
		}
		fetch := func(name, path string) error {
			data, err := os.ReadFile(paths[name])
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		}
		if err := pipeline.RestoreCheckpoint(c.Data, to.Sections(), fetch); err != nil {
			t.Fatal(err)
		}
		return to
	}
	same := restored(shard, true)
	archiveConserves(t, same.Counts.All(), published, memory+disk)
	off := restored(shard, false)
	counts = off.Counts.All()
	if _, on := counts[pipeline.CountArchiveOff]; on || counts[pipeline.CountArchiveLost] != int64(memory+disk) {
		t.Errorf("without an archive: counts %v, want %d lost", counts, memory+disk)
	}
	on := restored(off, true)
	archiveConserves(t, on.Counts.All(), published, 0)
	if got := on.Counts.All()[pipeline.CountArchiveLost]; got != int64(memory+disk) {
		t.Errorf("on again: %d lost, want %d", got, memory+disk)
	}
	for _, sh := range []*pipeline.Shard{shard, same, off, on} {
		if err := sh.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
