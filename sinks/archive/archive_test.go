package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
)

var quietLog = slog.New(slog.NewTextHandler(io.Discard, nil))

// archiveFile makes a complete file of n rows whose labels end at newest.
func archiveFile(t *testing.T, model, version string, seq uint64, n int, newest int64) *archivefile.File {
	t.Helper()
	r := archivefile.Rows{Model: model, Version: version, K: 3, D: 2}
	for i := range n {
		if !r.AppendFeatures([]float32{float32(i), 1}) {
			t.Fatal("features are refused")
		}
		r.IDs, r.TS, r.LabelTS = append(r.IDs, arrowio.HashIntID(seq*1000+uint64(i))), append(r.TS,
			1), append(r.LabelTS, newest)
		r.Label, r.Weight = append(r.Label, int32(i%3)), append(r.Weight, 1)
	}
	data, err := archivefile.EncodeSegment(&r, fmt.Sprint(seq))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return &archivefile.File{Group: "g", Model: model, Version: version, Partition: 1, Sequence: seq, K: 3,
		Rows: int64(n), Oldest: newest, Newest: newest,
		Segments: []archivefile.Segment{{Name: name, Bytes: int64(len(data)), Path: path}}}
}

// tree lists the files below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestArchivePublishesOnce: a file is there once, whole, under the name that it has; again is recognised, with other
// rows it is replaced, and a damaged one is made anew.
func TestArchivePublishesOnce(t *testing.T) {
	dir := t.TempDir()
	a := New(Config{Dir: dir, Log: quietLog})
	long := strings.Repeat("ß", 120)
	for _, c := range []struct{ model, version, path string }{
		{"m", "1", "model=m/version=1"},
		{"a/b c", "..", "model=a%2Fb%20c/version=.."},
		{"m", "", "model=m/version=__HIVE_DEFAULT_PARTITION__"},
		{long, "1", "model=" + strings.Repeat("%C3%9F", 33) + "%C~" + shortHash(long) + "/version=1"},
	} {
		f := archiveFile(t, c.model, c.version, 7, 5, 10)
		for range 2 {
			if err := a.Publish(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		want := filepath.Join(c.path, "g-00001-0000000007-000000000000.arrow")
		if got := tree(t, dir); !slices.Contains(got, want) {
			t.Errorf("files %v, want %s", got, want)
		}
	}
	a.Sweep()
	if s := a.Totals(); s.Written != 4 || s.Repeated != 4 || s.Replaced != 0 || s.Files != 4 || s.Rows != 20 ||
		s.Failed != 0 {
		t.Errorf("got %+v", s)
	}
	other := archiveFile(t, "m", "1", 7, 6, 10)
	path := filepath.Join(dir, "model=m/version=1", other.Name())
	if err := a.Publish(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if info, err := archivefile.ReadInfo(path); err != nil || info.Rows != 6 || a.Totals().Replaced != 1 {
		t.Errorf("%+v, %v, %+v", info, err, a.Totals())
	}
	if err := os.WriteFile(path, []byte("ARROW1 cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Publish(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if info, err := archivefile.ReadInfo(path); err != nil || info.Rows != 6 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestArchiveFailures: nothing but whole files is ever seen, whatever fails; the error names the file.
func TestArchiveFailures(t *testing.T) {
	dir := t.TempDir()
	a := New(Config{Dir: dir, Log: quietLog})
	f := archiveFile(t, "m", "1", 1, 3, 10)
	gone := *f
	gone.Segments = append(slices.Clone(f.Segments),
		archivefile.Segment{Name: "x", Path: filepath.Join(dir, "nothing")})
	damaged := *f
	damaged.Segments = []archivefile.Segment{{Name: "y", Path: filepath.Join(t.TempDir(), "y")}}
	if err := os.WriteFile(damaged.Segments[0].Path, []byte("\xff\xff\xff\xff\x10\x00\x00\x00 no Arrow"),
		0o600); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx context.Context
		f   *archivefile.File
	}{"gone": {t.Context(), &gone}, "damaged": {t.Context(), &damaged}, "done": {done, f}, "none": {t.Context(),
		&archivefile.File{Group: "g", Model: "m", Version: "1"}}} {
		if err := a.Publish(c.ctx, c.f); err == nil ||
			!strings.Contains(err.Error(), filepath.Join(dir, "model=m", "version=1", c.f.Name())) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := tree(t, dir); len(got) != 0 {
			t.Errorf("%s: files %v", name, got)
		}
	}
	if s := a.Totals(); s.Failed != 4 || s.FailingSince.IsZero() || s.LastFailure == "" {
		t.Errorf("got %+v", s)
	}
	blocked := New(Config{Dir: filepath.Join(f.Segments[0].Path, "below"), Log: quietLog})
	if err := blocked.Publish(t.Context(), f); err == nil {
		t.Error("a directory below a file")
	}
	if err := a.Publish(t.Context(), f); err != nil || !a.Totals().FailingSince.IsZero() {
		t.Errorf("%v, %+v", err, a.Totals())
	}
}

// TestArchiveRetention: by age against the newest label of the same model version, and by size, the oldest labels
// first; what is not the archive's stays, and what a process left unfinished goes when it is old.
func TestArchiveRetention(t *testing.T) {
	dir := t.TempDir()
	a := New(Config{Dir: dir, MaxAge: 100, Log: quietLog})
	for i, newest := range []int64{0, 50, 120, 150} {
		if err := a.Publish(t.Context(), archiveFile(t, "m", "1", uint64(i), 5, newest)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Publish(t.Context(), archiveFile(t, "m", "2", 9, 5, 1)); err != nil { // an old version's newest stays
		t.Fatal(err)
	}
	version := filepath.Join(dir, "model=m", "version=1")
	for name, age := range map[string]time.Duration{".plumbline-1.tmp": 2 * staleTemporary, ".plumbline-2.tmp": 0,
		"notes.txt": 2 * staleTemporary, "foreign.arrow": 0} {
		path := filepath.Join(version, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	a.Sweep()
	want := []string{"model=m/version=1/.plumbline-2.tmp", "model=m/version=1/foreign.arrow",
		"model=m/version=1/g-00001-0000000001-000000000000.arrow",
		"model=m/version=1/g-00001-0000000002-000000000000.arrow",
		"model=m/version=1/g-00001-0000000003-000000000000.arrow",
		"model=m/version=1/notes.txt", "model=m/version=2/g-00001-0000000009-000000000000.arrow"}
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	s := a.Totals()
	if s.Deleted != 1 || s.Files != 4 || s.Rows != 20 || s.Unreadable != 1 || s.Oldest != 1 || s.Newest != 150 {
		t.Errorf("got %+v", s)
	}
	// Another process with a bound on size: two and a half files.
	b := New(Config{Dir: dir, MaxBytes: s.Bytes / 4 * 5 / 2, Log: quietLog})
	b.Sweep()
	want = []string{"model=m/version=1/.plumbline-2.tmp", "model=m/version=1/foreign.arrow",
		"model=m/version=1/g-00001-0000000002-000000000000.arrow",
		"model=m/version=1/g-00001-0000000003-000000000000.arrow", "model=m/version=1/notes.txt"}
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	New(Config{Dir: dir, MaxBytes: 1, Log: quietLog}).Sweep()
	if got := tree(t, dir); len(got) != 4 {
		t.Errorf("files %v: the newest is to stay", got)
	}
	a.Sweep()
	if s := a.Totals(); s.Files != 1 || s.Rows != 5 {
		t.Errorf("got %+v", s)
	}
}

// TestArchiveMetrics: the metrics of docs/metrics.md.
func TestArchiveMetrics(t *testing.T) {
	a := New(Config{Dir: t.TempDir(), Log: quietLog})
	if err := a.Publish(t.Context(), archiveFile(t, "m", "1", 1, 5, 3e9)); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(a)
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{"plumbline_archive_files 1\n", "plumbline_archive_rows 5\n",
		"plumbline_archive_files_written_total 1\n", "plumbline_archive_failing 0\n",
		"plumbline_archive_newest_label_timestamp_seconds 3\n",
		`plumbline_archive_files_repeated_total{result="kept"} 0`, "plumbline_archive_files_deleted_total 0\n"} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
}

// TestNobodyWaitsForASweep: looking through a directory may take long. Meanwhile files are published, and metrics are
// asked for.
func TestNobodyWaitsForASweep(t *testing.T) {
	dir := t.TempDir()
	a := New(Config{Dir: dir, Log: quietLog})
	pipes := []string{filepath.Join(dir, "1.arrow"), filepath.Join(dir, "2.arrow")}
	for _, pipe := range pipes {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	meet := func(pipe string) { // who opens a pipe waits until the other side is opened, too
		t.Helper()
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
	}
	swept, published := make(chan bool), make(chan error)
	go func() { a.Sweep(); close(swept) }()
	meet(pipes[0])
	f := archiveFile(t, "m", "1", 1, 3, 100)
	go func() { err := a.Publish(context.Background(), f); a.Totals(); published <- err }()
	select {
	case err := <-published:
		if err != nil {
			t.Error(err)
		}
		meet(pipes[1])
	case <-time.After(10 * time.Second):
		t.Error("publishing a file waits for a sweep")
		meet(pipes[1])
		<-published
	}
	<-swept
	if s := a.Totals(); s.Written != 1 || s.Unreadable != 2 {
		t.Errorf("got %+v", s)
	}
}
