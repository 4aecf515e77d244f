package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/workdir"
	"github.com/plumbline/plumbline/pipeline"
)

// errStopped ends a task that waits for room. It does not wrap the context's error: a task that ends well takes a
// checkpoint, and here a message has been taken half.
var errStopped = errors.New("archive: stopped while waiting for room on disk; " +
	"the records since the last checkpoint are read again")

// Waits between attempts to write while the disk is full.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 10 * time.Second
)

// scratch is the directory of encoded record batches that are not published yet.
type scratch struct {
	dir, name string
	work      *workdir.Dir // nil until the first is written
}

func (w *scratch) path(name string) (string, error) {
	if w.work == nil {
		var err error
		if w.work, err = workdir.New(w.dir, w.name); err != nil {
			return "", err
		}
	}
	return filepath.Join(w.work.Path(), name), nil
}

// write writes the bytes to a new file. After an error it removes the file.
func (w *scratch) write(data []byte) (archivefile.Segment, error) {
	sum := sha256.Sum256(data)
	s := archivefile.Segment{Name: hex.EncodeToString(sum[:]), Bytes: int64(len(data))}
	var err error
	if s.Path, err = w.path(s.Name); err != nil {
		return s, err
	}
	if err := os.WriteFile(s.Path, data, 0o600); err != nil {
		_ = os.Remove(s.Path)
		return s, fmt.Errorf("archive: %w", err)
	}
	return s, nil
}

func (w *scratch) close() error {
	if w.work == nil {
		return nil
	}
	err := w.work.Remove()
	w.work = nil
	return err
}

// cut makes a record batch of the rows in memory. Where there is no room on disk it waits, or drops them.
func (a *Operator) cut(ctx context.Context, o *openFile) error {
	if o.rows.N() == 0 {
		return nil
	}
	data, err := archivefile.EncodeSegment(&o.rows, fmt.Sprintf("%d/%d", o.file.Sequence, len(o.file.Segments)))
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	s, err := a.work.write(data)
	if err != nil && !a.cfg.drop() {
		s, err = a.retry(ctx, data, err)
	}
	if errors.Is(err, errStopped) {
		return err
	}
	n := int64(o.rows.N())
	if err == nil {
		o.file.Segments = append(o.file.Segments, s)
		a.counts.Move(pipeline.CountArchiveMemory, pipeline.CountArchiveDisk, n)
	} else {
		a.log.Error("rows cannot be archived and are dropped", "rows", n, "err", err)
		a.counts.Add(pipeline.CountArchiveMemory, -n)
		a.counts.Move(CountArchived, CountArchiveDropped, n)
		o.file.Rows -= n
	}
	a.bytes -= o.size
	o.size = 0
	empty(a, o)
	return nil
}

// empty removes the rows of a file. Their memory stays for the next ones while all files together keep at most half of
// archive.memory_bytes, which counts rows alone: many files of which one at a time gets rows would keep far more. What
// is kept is no part of the state, so it decides nothing about files.
func empty(a *Operator, o *openFile) {
	a.kept -= o.kept
	o.kept = o.rows.Capacity()
	if a.kept+o.kept > a.cfg.MemoryBytes/2 {
		o.kept = 0
		o.begin()
	} else {
		o.rows.Reset()
	}
	a.kept += o.kept
}

// retry writes until it succeeds or ctx is done.
func (a *Operator) retry(ctx context.Context, data []byte, err error) (archivefile.Segment, error) {
	a.log.Error("rows cannot be archived, the shard waits", "policy", "archive.when_full: wait", "err", err)
	for again := backoff.New(a.cfg.retry, retryMost); ; {
		if again.Wait(ctx); ctx.Err() != nil {
			return archivefile.Segment{}, errStopped
		}
		if s, err := a.work.write(data); err == nil {
			a.log.Info("rows can be archived again")
			return s, nil
		}
	}
}

// complete closes a file: no row follows.
func (a *Operator) complete(ctx context.Context, o *openFile) error {
	if err := a.cut(ctx, o); err != nil {
		return err
	}
	a.kept -= o.kept
	o.rows = archivefile.Rows{} // the queue holds on to o.file, and with it to all of o
	if a.open[o.key] == o {
		delete(a.open, o.key)
	}
	at, _ := slices.BinarySearchFunc(a.order, o, func(x, y *openFile) int {
		return cmp.Compare(x.file.Sequence, y.file.Sequence)
	})
	a.order = slices.Delete(a.order, at, at+1)
	if o.file.Rows == 0 {
		return nil
	}
	a.counts.Add(CountArchiveFiles, 1)
	a.queue.add(&o.file)
	if a.cfg.AtOnce {
		a.queue.showAll()
	}
	return nil
}

// Flush completes all files and shows them, and waits until they are published: for inputs that end, and have no
// checkpoints.
func (a *Operator) Flush(ctx context.Context) error {
	for len(a.order) > 0 {
		if err := a.complete(ctx, a.order[0]); err != nil {
			return err
		}
	}
	a.queue.showAll()
	err := a.queue.empty(ctx)
	a.queue.count()
	return err
}

// Close stops publishing and removes the files of the work directory. Only the checkpoint stays.
func (a *Operator) Close() error {
	a.queue.close()
	return a.work.close()
}
