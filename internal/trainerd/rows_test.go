package trainerd_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/archive"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/service"
)

// labelledRow is a row of an archive.
type labelledRow struct {
	id          uint64
	ts, labelTS int64
	label       int32
	x           []float32
}

// archiveRowsOf makes n rows a second apart, whose labels come 10 s later, every seventh's 1,000 s.
func archiveRowsOf(n, d, k int) []labelledRow {
	r := rand.New(rand.NewPCG(5, 6))
	out := make([]labelledRow, n)
	for i := range out {
		ts, delay := int64(i+1)*int64(time.Second), 10*time.Second
		if i%7 == 3 {
			delay = 1000 * time.Second
		}
		x := make([]float32, d)
		for j := range x {
			x[j] = float32(r.IntN(2000)-1000) / 64 // a float16 too
		}
		out[i] = labelledRow{uint64(i), ts, ts + int64(delay), int32(r.IntN(k)), x}
	}
	return out
}

// publishRows adds rows to an archive as one file.
func publishRows(t *testing.T, a *archive.Archive, version string, partition int, seq uint64, k int, half bool,
	rows []labelledRow) {
	t.Helper()
	r := archivefile.Rows{Model: "m", Version: version, K: k, D: len(rows[0].x), Half: half}
	f := archivefile.File{Group: "g", Model: "m", Version: version, Partition: partition, Sequence: seq, K: k,
		Rows: int64(len(rows)), Oldest: rows[0].labelTS, Newest: rows[0].labelTS}
	for _, row := range rows {
		if !r.AppendFeatures(row.x) {
			t.Fatal("features are refused")
		}
		r.IDs, r.TS, r.LabelTS = append(r.IDs, arrowio.HashIntID(row.id)), append(r.TS, row.ts), append(r.LabelTS,
			row.labelTS)
		r.Label, r.Weight = append(r.Label, row.label), append(r.Weight, 1)
		f.Oldest, f.Newest = min(f.Oldest, row.labelTS), max(f.Newest, row.labelTS)
	}
	segment, err := archivefile.EncodeSegment(&r, fmt.Sprint(version, partition, seq))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(segment)
	path := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(path, segment, 0o600); err != nil {
		t.Fatal(err)
	}
	f.Segments = []archivefile.Segment{{Name: hex.EncodeToString(sum[:]), Bytes: int64(len(segment)), Path: path}}
	if err := a.Publish(t.Context(), &f); err != nil {
		t.Fatal(err)
	}
}

// loaderOf is a loader with the given settings, which does not wait; its log goes to the buffer.
func loaderOf(change func(*service.Config)) (trainerd.Loader, *bytes.Buffer) {
	cfg := config.Default()
	cfg.Trainer.Settle = 0
	change(&cfg.Trainer)
	var log bytes.Buffer
	return trainerd.Loader{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

func requestOf(version string, from, to int64, k int) record.Finetune {
	return record.Finetune{ID: "m/" + version + "+head9", Model: "m", Version: version, Classes: k, Seed: 3,
		Data: record.FinetuneData{From: record.At(from), To: record.At(to)}}
}

// rowsOf are the rows of a set in the order of time.
func rowsOf(s *data.Set) (out []labelledRow) {
	for i := range s.N() {
		out = append(out, labelledRow{ts: s.Time[i], label: s.Y[i], x: slices.Clone(s.Chunk(nil, i, 1))})
	}
	slices.SortFunc(out, func(a, b labelledRow) int { return cmp.Compare(a.ts, b.ts) })
	return out
}

func sameRows(got, want []labelledRow) bool {
	return slices.EqualFunc(got, want, func(a, b labelledRow) bool {
		return a.ts == b.ts && a.label == b.label &&
			slices.Equal(a.x, b.x)
	})
}

// TestTrainerRowsOfArchive: the rows of a request are those of its version that were predicted in its range and
// labelled by its end, each once, the newest of them where there are too many, balanced where that is asked for;
// whether their features fit into memory or stay in their files. What was left out is said.
func TestTrainerRowsOfArchive(t *testing.T) {
	const k, d = 3, 5
	rows := archiveRowsOf(900, d, k)
	dir := t.TempDir()
	a := archive.New(archive.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	for i := range 9 {
		publishRows(t, a, "1", i%2, uint64(i), k, true, rows[i*100:(i+1)*100])
	}
	publishRows(t, a, "1", 0, 20, k, true, rows[150:170]) // twice there
	publishRows(t, a, "2", 0, 21, k, true, rows[:100])
	version := filepath.Join(dir, "model=m", "version=1")
	whole, err := os.ReadFile(filepath.Join(version, "g-00000-0000000008-000000000000.arrow"))
	if err := errors.Join(err, os.WriteFile(filepath.Join(version, "cut.arrow"), whole[:len(whole)-40], 0o600),
		os.WriteFile(filepath.Join(dir, "foreign.arrow"), []byte("no Arrow"), 0o600),
		os.Symlink("nowhere", filepath.Join(version, "gone.arrow"))); err != nil {
		t.Fatal(err)
	}
	from, to := rows[100].ts, rows[850].ts
	var want []labelledRow
	for _, r := range rows {
		if r.ts >= from && r.ts < to && r.labelTS <= to {
			want = append(want, r)
		}
	}
	twice := 0
	for _, r := range rows[150:170] {
		if r.labelTS <= to {
			twice++
		}
	}
	for _, c := range []struct {
		memory, maxRows int
		balance         float64
	}{{1 << 30, 0, 0}, {0, 0, 0}, {1 << 30, 200, 0}, {0, 200, 0}, {0, 0, 1}} {
		l, log := loaderOf(func(tr *service.Config) {
			tr.Archive, tr.MemoryBytes, tr.MaxRows, tr.Balance = dir, c.memory, c.maxRows, c.balance
		})
		got, err := l.Load(t.Context(), requestOf("1", from, to, k))
		if err != nil {
			t.Fatal(err)
		}
		expect := want
		if c.maxRows > 0 {
			expect = want[len(want)-c.maxRows*5/4:]
		}
		train, valid := rowsOf(got.Train), rowsOf(got.Valid)
		held := (len(expect) + 2) / 5
		used := got.Used.(trainerd.Rows)
		if c.balance == 0 && !sameRows(train, expect[:len(expect)-held]) ||
			!sameRows(valid, expect[len(expect)-held:]) {
			t.Errorf("%+v: %d rows train, %d validate, want %d and %d of %d", c, len(train), len(valid),
				len(expect)-held, held, len(expect))
		}
		if c.balance > 0 && (slices.Max(used.TrainBy) != slices.Min(used.TrainBy) || used.Balanced == 0) {
			t.Errorf("%+v: rows by class %v", c, used.TrainBy)
		}
		if used.Streamed != (c.memory == 0) || (got.Train.Stored != nil) != used.Streamed || used.Repeated != twice ||
			used.FeatureBytes != int64(2*d*len(expect)) {
			t.Errorf("%+v: got %+v", c, used)
		}
		text := strings.Join(used.LeftOut, "\n")
		for _, name := range []string{"cut.arrow", "foreign.arrow"} {
			if !strings.Contains(text, name) || !strings.Contains(log.String(), name) {
				t.Errorf("%s is not said to be left out: %s; log %s", name, text, log)
			}
		}
		if len(used.LeftOut) != 2 || used.ArchiveFiles != 10 {
			t.Errorf("left out %q, %d files", used.LeftOut, used.ArchiveFiles)
		}
		got.Close()
	}
}

// TestTrainerLabelsBeforePredictions: rows of the range count whatever the time of their label, which may be the
// midnight before, in files all of whose labels are of before the range too. Files without a row of the range are not
// used.
func TestTrainerLabelsBeforePredictions(t *testing.T) {
	const k, d, day = 3, 5, int64(24 * time.Hour)
	rows := archiveRowsOf(900, d, k)
	dir := t.TempDir()
	a := archive.New(archive.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	for i := range rows {
		rows[i].ts += day
		rows[i].labelTS = rows[i].ts / day * day
	}
	for i := range 3 {
		publishRows(t, a, "1", 0, uint64(i), k, true, rows[300*i:300*(i+1)])
	}
	l, log := loaderOf(func(c *service.Config) { c.Archive = dir })
	got, err := l.Load(t.Context(), requestOf("1", rows[300].ts, rows[899].ts+1, k))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	used := got.Used.(trainerd.Rows)
	if n := got.Train.N() + got.Valid.N(); n != 600 || used.ArchiveFiles != 2 {
		t.Errorf("%d rows of %d files, want 600 of 2; used %+v\n%s", n, used.ArchiveFiles, used, log)
	}
}

// TestTrainerReadsWhileArchiveShrinks: what the archive removes while it is read stays readable to whoever has it open;
// what it removed a moment before is left out and counted, and the rest is trained on.
func TestTrainerReadsWhileArchiveShrinks(t *testing.T) {
	const k, d, files, per = 3, 64, 30, 40
	rows := archiveRowsOf(files*per, d, k)
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	publish := func() {
		a := archive.New(archive.Config{Dir: dir, Log: quiet})
		for i := range files {
			publishRows(t, a, "1", 0, uint64(i), k, false, rows[i*per:(i+1)*per])
		}
	}
	publish()
	l, _ := loaderOf(func(tr *service.Config) { tr.Archive, tr.MemoryBytes = dir, 0 })
	request := requestOf("1", 0, 1<<60, k)
	got, err := l.Load(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	held := len(rows) / 5
	if !sameRows(rowsOf(got.Train), rows[:len(rows)-held]) || !sameRows(rowsOf(got.Valid), rows[len(rows)-held:]) {
		t.Error("rows are others after the archive has removed their files")
	}
	got.Close()

	for range 3 {
		publish()
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			for most := int64(files - 1); most >= 3; most-- {
				archive.New(archive.Config{Dir: dir, MaxBytes: most * 12_000, Log: quiet}).Sweep()
			}
		}()
		for done := false; !done; {
			select {
			case <-swept:
				done = true
			default:
			}
			got, err := l.Load(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range slices.Concat(rowsOf(got.Train), rowsOf(got.Valid)) {
				if i := int(r.ts/int64(time.Second)) - 1; !slices.Equal(r.x, rows[i].x) || r.label != rows[i].label {
					t.Fatalf("row %d has other features or another label", i)
				}
			}
			got.Close()
		}
	}
}

// TestServingHeads: a mistake in trainer.heads is found at the start, and one that only rows show keeps the request.
func TestServingHeads(t *testing.T) {
	const k, d = 3, 4
	rows := archiveRowsOf(100, d, k)
	dir := t.TempDir()
	publishRows(t, archive.New(archive.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)}), "1", 0, 1, k, false, rows)
	write := func(d int) string {
		var b bytes.Buffer
		if err := artefact.WriteSafetensors(&b, head.FreshLinear(d, k, 1), nil); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(strings.Replace(b.String(), `"0.weight"`, `"weight"  `, 1), `"0.bias"`, `"bias"  `, 1)
		file := filepath.Join(t.TempDir(), "head.safetensors")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	loader := func(file string) trainerd.Loader {
		l, _ := loaderOf(func(tr *service.Config) {
			tr.Archive, tr.Heads = dir, []service.ServingHead{{Model: "m", File: file}}
		})
		return l
	}
	request := requestOf("1", 0, 1<<60, k)
	right := write(d)
	if _, err := trainerd.NewRunner(loader(right)); err != nil {
		t.Error(err)
	}
	got, err := loader(right).Load(t.Context(), request)
	if err != nil || got.Current == nil || got.Current.D() != d {
		t.Errorf("a bare nn.Linear: %+v, %v", got.Current, err)
	}
	got.Close()
	missing := filepath.Join(dir, "missing.safetensors")
	_, err = trainerd.NewRunner(loader(missing))
	if err == nil || !strings.Contains(err.Error(), "trainer.heads[0].file, model m") {
		t.Errorf("a missing file at the start: %v", err)
	}
	for name, file := range map[string]string{"missing": missing, "of other features": write(d + 1)} {
		_, err := loader(file).Load(t.Context(), request)
		if !errors.Is(err, service.ErrSetup) || errors.Is(err, service.ErrHopeless) ||
			!strings.Contains(err.Error(), "trainer.heads: ") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want that the configuration is wrong", name, err)
		}
	}
}

// TestTrainerFilesOfVersions: of directories and files with rows of several versions those of the request's backbone
// are taken, and it is said which were not.
func TestTrainerFilesOfVersions(t *testing.T) {
	const k, d = 3, 4
	rows := archiveRowsOf(400, d, k)
	dir := t.TempDir()
	a := archive.New(archive.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	for i, version := range []string{"1", "1+head1", "2", "1+head1+head2"} {
		publishRows(t, a, version, 0, uint64(i), k, false, rows[i*100:(i+1)*100])
	}
	if err := os.WriteFile(filepath.Join(dir, "foreign.arrow"), []byte("no Arrow"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := func(version string) string {
		table := &table.Table{N: 100, K: k, D: d, Model: "m", Version: version, Scores32: make([]float32, 100*k)}
		for _, r := range rows[:100] {
			table.TS, table.Label, table.Features = append(table.TS, r.ts), append(table.Label,
				r.label), append(table.Features, r.x...)
		}
		return writeRows(t, "named.arrow", table)
	}
	load := func(version string, files ...string) (trainerd.Rows, error) {
		l, _ := loaderOf(func(tr *service.Config) { tr.Files = files })
		got, err := l.Load(t.Context(), requestOf(version, 0, 1<<60, k))
		if err != nil {
			return trainerd.Rows{}, err
		}
		got.Close()
		return got.Used.(trainerd.Rows), nil
	}
	for version, want := range map[string]struct{ rows, files, others int }{"1": {300, 3, 1}, "1+head7": {300, 3, 1},
		"2": {100, 1, 3}} {
		used, err := load(version, dir)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(used.LeftOut, "\n")
		if used.Rows != want.rows || len(used.Files) != want.files ||
			strings.Count(text, "1 files of model") != want.others || !strings.Contains(text, "foreign.arrow") {
			t.Errorf("version %s: %d rows of %v, left out %q; want %d of %d files, and %d of others", version,
				used.Rows, used.Files, used.LeftOut, want.rows, want.files, want.others)
		}
	}
	if used, err := load("1", named("2"), named("1+head4")); err != nil || used.Rows != 100 || len(used.LeftOut) != 1 ||
		used.LeftOut[0] != `1 files of model "m" version "2": the request is of model "m" version "1"` {
		t.Errorf("got %d rows, left out %q, %v", used.Rows, used.LeftOut, err)
	}
	if _, err := load("3", dir, named("2")); err == nil ||
		!strings.Contains(err.Error(), `2 files of model "m" version "2": the request is of model "m" version "3"`) {
		t.Errorf("got %v, want that nothing is of version 3", err)
	}
	if _, err := load("1", filepath.Join(dir, "nothing.arrow")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that a file that is named must be there", err)
	}
	narrow := writeRows(t, "narrow.arrow", &table.Table{N: 2, K: k, D: 1, Scores32: make([]float32, 2*k),
		Label: []int32{0, 1}, TS: []arrowio.Time{1, 2}, Features: []float32{1, 2}})
	if _, err := load("1", dir, narrow); !errors.Is(err, service.ErrHopeless) ||
		!strings.Contains(err.Error(), "1 features a row, 4 before") {
		t.Errorf("got %v, want that rows of two shapes are hopeless", err)
	}
}

// TestTrainerSystemErrors: what the system refuses is the attempt's error, not rows that are silently missing.
func TestTrainerSystemErrors(t *testing.T) {
	rows := archiveRowsOf(50, 4, 3)
	table := &table.Table{N: 50, K: 3, D: 4, Scores32: make([]float32, 150)}
	for _, r := range rows {
		table.TS, table.Label, table.Features = append(table.TS, r.ts), append(table.Label,
			r.label), append(table.Features, r.x...)
	}
	file := writeRows(t, "rows.csv", table)
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	t.Setenv("TMPDIR", nowhere)
	l, _ := loaderOf(func(tr *service.Config) { tr.Files, tr.MemoryBytes = []string{file}, 0 })
	_, err := l.Load(t.Context(), requestOf("1", 0, 1<<60, 3))
	if err == nil || !strings.Contains(err.Error(), "trainer.memory_bytes") || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("got %v, want that there is no room for unpacked features, and where", err)
	}
}

// TestTrainerWithoutArchive: an archive that is not there, or has nothing, is told from one without rows of the time.
func TestTrainerWithoutArchive(t *testing.T) {
	empty, file := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		filepath.Join(empty, "none"): "the directory is not there",
		file:                         "it is no directory",
		empty:                        "the directory has no files of theirs that can be read",
	} {
		l, _ := loaderOf(func(c *service.Config) { c.Archive = dir })
		_, err := l.Load(t.Context(), requestOf("1", 0, 1<<62, 5))
		if err == nil || errors.Is(err, service.ErrHopeless) ||
			!strings.Contains(err.Error(), dir+": no archived rows of m version 1: "+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func writeRows(t *testing.T, name string, rows *table.Table) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := table.Write(path, rows); err != nil {
		t.Fatal(err)
	}
	return path
}
