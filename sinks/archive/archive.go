package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/internal/durable"
)

// Config configures Archive.
type Config struct {
	Dir string
	// MaxBytes and MaxAge bound what is kept: the size of all files, and how much older than the newest label of its
	// model version a file's newest label may be, ns. 0 = no bound.
	MaxBytes, MaxAge int64
	Log              *slog.Logger
}

// Archive is a directory of archive files, model=NAME/version=NAME/FILE.arrow, as data set readers know it. A file is
// there whole or not at all: it is written under a temporary name, which begins with a dot, made durable and renamed.
// Processes may share the directory. Safe for concurrent use.
type Archive struct {
	cfg Config

	looking sync.Mutex          // held by who looks through the directory
	known   map[string]archived // theirs, by path

	mu       sync.Mutex
	stats    Stats
	swept    time.Time     // when the directory was looked through last
	sweeping time.Duration // how long that took
}

// Stats is what an Archive has done, and what was there when it looked last.
type Stats struct {
	Written, WrittenBytes int64 // files
	Repeated, Replaced    int64 // files that were there, with the same rows and with others
	Failed                int64 // attempts
	Deleted, DeletedBytes int64 // files beyond MaxBytes or MaxAge
	Files, Bytes, Rows    int64 // in the directory
	Unreadable            int64 // files in it that are no archive files
	Oldest, Newest        int64 // label times
	LastFailure           string
	FailingSince          time.Time
}

// New returns the archive in a directory, which is made when the first file comes.
func New(cfg Config) *Archive {
	return &Archive{cfg: cfg, known: map[string]archived{}}
}

// Totals returns a copy.
func (a *Archive) Totals() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// Publish makes a file visible. One that is there with the same rows stays; one with other rows is replaced, for the
// sequence of files is begun anew only by somebody who removed the checkpoints. After archivefile.ErrDamaged another
// attempt is of no use.
func (a *Archive) Publish(ctx context.Context, f *archivefile.File) error {
	err := a.publish(ctx, f)
	a.mu.Lock()
	switch {
	case err != nil:
		a.stats.Failed++
		a.stats.LastFailure = err.Error()
		if a.stats.FailingSince.IsZero() && !errors.Is(err, archivefile.ErrDamaged) {
			a.stats.FailingSince = time.Now()
		}
	default:
		a.stats.FailingSince = time.Time{}
	}
	due := time.Since(a.swept) >= sweepShare*a.sweeping
	a.mu.Unlock()
	if err == nil && due && a.looking.TryLock() {
		defer a.looking.Unlock()
		a.sweep()
	}
	return err
}

// sweepShare divides the time between looking through the directory, which may have many files, and the rest.
const sweepShare = 20

func (a *Archive) publish(ctx context.Context, f *archivefile.File) error {
	dir := filepath.Join(a.cfg.Dir, "model="+escape(f.Model), "version="+escape(f.Version))
	path := filepath.Join(dir, f.Name())
	switch info, err := archivefile.ReadInfo(path); {
	case err == nil && info.Digest == f.Digest():
		a.count(func(s *Stats) { s.Repeated++ })
		return nil
	case err == nil:
		a.cfg.Log.Warn("an archive file is replaced by one with other rows; "+
			"was the state removed, and the archive not?",
			"file", path, "rows", f.Rows, "before", info.Rows)
		a.count(func(s *Stats) { s.Replaced++ })
	case !errors.Is(err, fs.ErrNotExist):
		a.cfg.Log.Warn("a file in the archive that cannot be read is replaced", "file", path, "err", err)
	}
	if err := durable.MakeDir(dir); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	n, err := writeArchive(ctx, path, f)
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Written++
	a.stats.WrittenBytes += n
	return nil
}

func (a *Archive) count(f func(*Stats)) {
	a.mu.Lock()
	f(&a.stats)
	a.mu.Unlock()
}

// temporary begins the names of files that are not complete; readers of data sets skip names with a dot.
const temporary = ".plumbline-"

// writeArchive writes a file and returns its size.
func writeArchive(ctx context.Context, path string, f *archivefile.File) (n int64, err error) {
	err = durable.Write(path, temporary+"*.tmp", func(tmp *os.File) error {
		err := archivefile.Write(tmp, f, func(s archivefile.Segment) ([]byte, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return os.ReadFile(s.Path)
		})
		if err != nil {
			return err
		}
		st, err := tmp.Stat()
		if err == nil {
			n = st.Size()
		}
		return err
	})
	return n, err
}

// escape makes a name of any text, as URLs do: dots and slashes in front would mean something, and names have at most
// 255 bytes, so what is longer ends in a hash.
func escape(name string) string {
	e := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	if e == "" {
		return "__HIVE_DEFAULT_PARTITION__"
	}
	const longest = 200
	if len(e) <= longest {
		return e
	}
	return e[:longest] + "~" + shortHash(name)
}
