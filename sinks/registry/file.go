package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// fileFormat is the version of what is in the file.
const fileFormat = 1

// The buckets of the file. Every model has a bucket in bucketModels, with an "entries" and a "decisive" bucket.
var (
	bucketMeta      = []byte("meta")      // keyFormat: one byte
	bucketPositions = []byte("positions") // cluster, topic and partition: next offset
	bucketPlaces    = []byte("places")    // id: position and model
	bucketModels    = []byte("models")
	bucketEntries   = []byte("entries")  // position: entry
	bucketDecisive  = []byte("decisive") // position: nothing, of the entries that may say what is in force
	keyFormat       = []byte("format")
)

// errDamaged says that the file cannot be read. It is not opened again until it has changed.
var errDamaged = errors.New("the file is damaged; remove it, and it is filled again from the topics")

// file is a database in a file (bbolt). It is open, and locked, for one transaction at a time, so that several
// processes of a machine may use it.
type file struct {
	path string
	wait time.Duration // for another process's lock
	most int           // bytes; 0 = no bound

	mu     sync.RWMutex // keeps transactions of this process from waiting for the lock of the file, which is polled
	closed bool

	bad     sync.Mutex  // of what follows
	damaged error       // why the file is not opened; nil = it is
	was     fs.FileInfo // the file that was damaged
}

func newFile(c *Options) (*file, error) {
	if c.Path == "" {
		return nil, errors.New("history.path: must not be empty")
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, fmt.Errorf("history.path %q: %w", c.Path, err)
	}
	return &file{path: path, wait: c.Timeout / 2}, nil
}

func (d *file) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

func (d *file) view(ctx context.Context, f func(reader) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	info, err := os.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		if d.closed {
			return errClosed
		}
		return f(emptyFile{}) // nobody has written yet
	}
	return d.open(ctx, true, func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucketMeta) == nil {
				return f(emptyFile{}) // the first transaction was cut off
			}
			if err := checkFormat(tx); err != nil {
				return err
			}
			return f(&fileTx{tx})
		})
	})
}

func (d *file) update(ctx context.Context, f func(writer) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return err
	}
	return d.open(ctx, false, func(db *bbolt.DB) error {
		return db.Update(func(tx *bbolt.Tx) error {
			if err := makeBuckets(tx); err != nil {
				return err
			}
			if err := f(&fileTx{tx}); err != nil {
				return err
			}
			return ctx.Err() // nothing is committed for a caller who has left
		})
	})
}

// open runs f with the file open. bbolt panics on a damaged page, and the system on one that is missing: both are
// errors.
func (d *file) open(ctx context.Context, reads bool, f func(*bbolt.DB) error) (err error) {
	if err := d.usable(ctx); err != nil {
		return err
	}
	var held *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			_ = held.Close() // and with it the lock: bbolt's own Close may wait for the transaction for ever
			err = d.refuse(fmt.Errorf("%v", p))
		}
	}()
	db, err := bbolt.Open(d.path, 0o600, &bbolt.Options{
		Timeout:      d.patience(ctx),
		ReadOnly:     reads,
		FreelistType: bbolt.FreelistMapType,
		MaxSize:      d.most,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			held, err = os.OpenFile(name, flag, mode)
			return held, err
		},
	})
	if err != nil {
		return d.explain(err)
	}
	err = f(db)
	return errors.Join(d.explain(err), db.Close())
}

// usable reports why the file cannot be opened.
func (d *file) usable(ctx context.Context) error {
	if d.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.bad.Lock()
	defer d.bad.Unlock()
	if d.damaged == nil {
		return nil
	}
	now, err := os.Stat(d.path)
	if err == nil && d.was != nil && os.SameFile(now, d.was) && now.Size() == d.was.Size() &&
		now.ModTime().Equal(d.was.ModTime()) {
		return d.damaged
	}
	d.damaged = nil
	return nil
}

// refuse notes that the file is damaged.
func (d *file) refuse(why error) error {
	d.bad.Lock()
	defer d.bad.Unlock()
	d.damaged = fmt.Errorf("%s: %w: %w", d.path, errDamaged, why)
	d.was, _ = os.Stat(d.path)
	return d.damaged
}

// patience is how long to wait for another process.
func (d *file) patience(ctx context.Context) time.Duration {
	wait := d.wait
	if until, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(until))
	}
	return max(wait, time.Millisecond) // 0 would be for ever
}

// explain says in words what bbolt's errors mean.
func (d *file) explain(err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: another process holds the lock of the file: %w", d.path, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err,
		bolterrors.ErrVersionMismatch),
		errors.Is(err, bolterrors.ErrInvalidMapping), errors.Is(err, errEntry):
		return d.refuse(err)
	}
	return err
}

func checkFormat(tx *bbolt.Tx) error {
	if v := tx.Bucket(bucketMeta).Get(keyFormat); !bytes.Equal(v, []byte{fileFormat}) {
		return fmt.Errorf("the file has version %v of the format, this build knows %d", v, fileFormat)
	}
	return nil
}

// makeBuckets makes what a new file lacks.
func makeBuckets(tx *bbolt.Tx) error {
	if tx.Bucket(bucketMeta) != nil {
		return checkFormat(tx)
	}
	for _, name := range [][]byte{bucketMeta, bucketPositions, bucketPlaces, bucketModels} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyFormat, []byte{fileFormat})
}

// emptyFile is a file that is not there yet.
type emptyFile struct{}

func (emptyFile) positionOf(Place) (int64, error)          { return 0, nil }
func (emptyFile) entries(*filter, func(*Entry) bool) error { return nil }
func (emptyFile) models() ([]string, error)                { return nil, nil }
