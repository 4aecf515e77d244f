package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
)

// staleTemporary is the age from which a temporary file is taken for one that a process left when it ended.
const staleTemporary = time.Hour

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// archived is a file of the directory.
type archived struct {
	path string
	info *archivefile.Info
	file fs.FileInfo // before info was read: a file that was replaced since is another
}

// is reports whether a file is the one that was read.
func (f *archived) is(file fs.FileInfo) bool {
	return f.info != nil && os.SameFile(f.file, file) && f.file.ModTime().Equal(file.ModTime()) &&
		f.file.Size() == file.Size()
}

// Sweep looks through the directory and removes the files beyond MaxAge and MaxBytes, those of the oldest labels first,
// and what processes have left unfinished. Files that are no archive files stay. Several processes may do it at a time.
func (a *Archive) Sweep() {
	a.looking.Lock()
	defer a.looking.Unlock()
	a.sweep()
}

// sweep is Sweep; the caller holds looking. What is said and published meanwhile does not wait for it.
func (a *Archive) sweep() {
	began := time.Now()
	files, unreadable := a.list()
	slices.SortFunc(files, func(x, y archived) int {
		return cmp.Or(cmp.Compare(x.info.Newest, y.info.Newest), cmp.Compare(x.path, y.path))
	})
	newest, total := map[arrowio.ModelKey]int64{}, int64(0)
	for _, f := range files { // ascending
		newest[arrowio.ModelKey{Model: f.info.Model, Version: f.info.Version}] = f.info.Newest
		total += f.info.Bytes
	}
	left, deleted, deletedBytes := files[:0], int64(0), int64(0)
	for i, f := range files {
		age := newest[arrowio.ModelKey{Model: f.info.Model, Version: f.info.Version}] - f.info.Newest
		old := a.cfg.MaxAge > 0 && age > a.cfg.MaxAge
		much := a.cfg.MaxBytes > 0 && total > a.cfg.MaxBytes && i < len(files)-1
		if !old && !much {
			left = append(left, f)
			continue
		}
		total -= f.info.Bytes
		if err := os.Remove(f.path); err != nil {
			if !os.IsNotExist(err) { // another process was faster
				a.cfg.Log.Error("archive file cannot be removed", "file", f.path, "err", err)
			}
			continue
		}
		delete(a.known, f.path)
		deleted++
		deletedBytes += f.info.Bytes
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.swept, a.sweeping = time.Now(), time.Since(began)
	s := &a.stats
	s.Deleted, s.DeletedBytes, s.Unreadable = s.Deleted+deleted, s.DeletedBytes+deletedBytes, unreadable
	s.Files, s.Bytes, s.Rows, s.Oldest, s.Newest = int64(len(left)), total, 0, 0, 0
	for i, f := range left {
		s.Rows += f.info.Rows
		s.Newest = f.info.Newest
		if i == 0 || f.info.Oldest < s.Oldest {
			s.Oldest = f.info.Oldest
		}
	}
}

// list reads the heads of the files that are new, and counts those that cannot be read.
func (a *Archive) list() (out []archived, unreadable int64) {
	seen := map[string]archived{}
	err := filepath.WalkDir(a.cfg.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what is not there any more, or may not be read, is no file of ours
		}
		name := d.Name()
		if strings.HasPrefix(name, temporary) {
			if st, err := d.Info(); err == nil && time.Since(st.ModTime()) > staleTemporary {
				_ = os.Remove(path)
			}
			return nil
		}
		if filepath.Ext(name) != ".arrow" {
			return nil
		}
		file, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it is not there any more
		}
		f := a.known[path]
		if !f.is(file) {
			info, err := archivefile.ReadInfo(path)
			if err != nil {
				unreadable++
				return nil
			}
			f = archived{path, info, file}
		}
		seen[path] = f
		out = append(out, f)
		return nil
	})
	if err != nil {
		a.cfg.Log.Error("archive cannot be listed", "directory", a.cfg.Dir, "err", err)
	}
	a.known = seen
	return out, unreadable
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plumbline_"+name, help, labels, nil)
}

var (
	descWritten  = desc("archive_files_written_total", "Archive files that this process has written.")
	descBytes    = desc("archive_written_bytes_total", "Bytes of them.")
	descRepeated = desc("archive_files_repeated_total",
		"Archive files made again after a restart that were there: with the same rows (kept) or others (replaced).",
		"result")
	descFailed = desc("archive_failures_total",
		"Attempts to write an archive file that failed; each is repeated until it succeeds.")
	descFailing = desc("archive_failing", "1 while archive files cannot be written.")
	descDeleted = desc("archive_files_deleted_total",
		"Archive files removed by archive.max_bytes and archive.max_age.")
	descFiles  = desc("archive_files", "Files in the archive directory.")
	descSize   = desc("archive_bytes", "Bytes of them.")
	descRows   = desc("archive_rows", "Rows in them.")
	descBad    = desc("archive_unreadable_files", "Files *.arrow in the archive directory that are no archive files.")
	descOldest = desc("archive_oldest_label_timestamp_seconds", "Event time of the oldest label in the archive.")
	descNewest = desc("archive_newest_label_timestamp_seconds", "And of the newest.")
)

// Describe implements prometheus.Collector.
func (a *Archive) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWritten, descBytes, descRepeated, descFailed, descFailing, descDeleted,
		descFiles, descSize, descRows, descBad, descOldest, descNewest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (a *Archive) Collect(ch chan<- prometheus.Metric) {
	s := a.Totals()
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	count(descWritten, s.Written)
	count(descBytes, s.WrittenBytes)
	count(descRepeated, s.Repeated, "kept")
	count(descRepeated, s.Replaced, "replaced")
	count(descFailed, s.Failed)
	count(descDeleted, s.Deleted)
	failing := 0.0
	if !s.FailingSince.IsZero() {
		failing = 1
	}
	gauge(descFailing, failing)
	gauge(descFiles, float64(s.Files))
	gauge(descSize, float64(s.Bytes))
	gauge(descRows, float64(s.Rows))
	gauge(descBad, float64(s.Unreadable))
	if s.Files > 0 {
		gauge(descOldest, float64(s.Oldest)/1e9)
		gauge(descNewest, float64(s.Newest)/1e9)
	}
}
