package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/sinks/archive"
)

// writeTrainArchive writes the rows of trainTable as archive files of a model version, so many rows each, without
// logits.
func writeTrainArchive(t *testing.T, dir, model, version string, table *table.Table, perFile int, half bool) {
	t.Helper()
	a := archive.New(archive.Config{Dir: dir})
	for at, seq := 0, uint64(0); at < table.N; at, seq = at+perFile, seq+1 {
		r := archivefile.Rows{Model: model, Version: version, K: table.K, D: table.D, Half: half}
		for i := at; i < min(at+perFile, table.N); i++ {
			if !r.AppendFeatures(table.Features[i*table.D : (i+1)*table.D]) {
				t.Fatal("features are refused")
			}
			r.IDs, r.TS, r.LabelTS = append(r.IDs, arrowio.HashIntID(uint64(i))), append(r.TS, table.TS[i]),
				append(r.LabelTS, table.TS[i]+5)
			r.Label, r.Weight = append(r.Label, table.Label[i]), append(r.Weight, 1)
		}
		data, err := archivefile.EncodeSegment(&r, "")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		path := filepath.Join(t.TempDir(), "segment")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err = a.Publish(t.Context(), &archivefile.File{Group: "g", Model: model, Version: version, Sequence: seq,
			K: table.K, Rows: int64(r.N()), Newest: r.LabelTS[r.N()-1],
			Segments: []archivefile.Segment{{Name: hex.EncodeToString(sum[:]), Bytes: int64(len(data)), Path: path}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrainDirectory: an archive in files gives the head that one file of the same rows gives; of several versions one
// must be chosen; damaged files are left out and named; what the report says is there in words, too.
func TestTrainDirectory(t *testing.T) {
	table, current := trainTable(240)
	head := writeHead(t, current)
	args := []string{"--head", head, "--recipe", "ce", "--epochs", "3", "--holdout", "0.1"}
	want := trainJSON(t, append([]string{writeTable(t, "a.arrow", table)}, args...)...)
	dir := t.TempDir()
	writeTrainArchive(t, dir, "m", "1", table, 50, false)
	got := trainJSON(t, append([]string{dir}, args...)...)
	if got.Holdout.After["nll"] != want.Holdout.After["nll"] || got.Rows["files"] != 5. ||
		got.Rows["train"] != want.Rows["train"] ||
		fmt.Sprint(got.Rows["train_time"]) != fmt.Sprint(want.Rows["train_time"]) {
		t.Errorf("rows %v, NLL %v, want %v, %v", got.Rows, got.Holdout.After["nll"], want.Rows,
			want.Holdout.After["nll"])
	}
	writeTrainArchive(t, dir, "m", "2", table, 100, true)
	refused := func(want string, args ...string) {
		t.Helper()
		if code, _, stderr := runCommand(t, append([]string{"train", "--recipe", "bottleneck"},
			args...)...); code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("train %v: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
	refused(`files of several model versions, whose features mean different things; choose one: `+
		`--model "m" --version "1" (5 files), --model "m" --version "2" (3 files)`, dir)
	refused(`no files of --model "m" --version "3"`, dir, "--model", "m", "--version", "3")
	got = trainJSON(t, append([]string{dir, "--version", "1"}, args...)...)
	if got.Holdout.After["nll"] != want.Holdout.After["nll"] || got.Rows["other_files"] != 3. {
		t.Errorf("rows %v, NLL %v, want that of version 1, %v", got.Rows, got.Holdout.After["nll"],
			want.Holdout.After["nll"])
	}
	files, err := filepath.Glob(filepath.Join(dir, "model=m", "version=1", "*.arrow"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v", files, err)
	}
	whole, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(files[1], whole[:len(whole)-20], 0o600),
		os.WriteFile(files[3], []byte("ARROW1"), 0o600),
		os.WriteFile(filepath.Join(dir, ".half.arrow"), []byte("x"), 0o600),
		os.Symlink("nowhere", filepath.Join(dir, "model=m", "version=1", "gone.arrow"))); err != nil {
		t.Fatal(err)
	}
	code, text, stderr := runCommand(t, append([]string{"train", dir, "--version", "1", "--log-level", "error"},
		args...)...)
	for _, want := range []string{"101 rows train, 25 validate, 14 are held out, by time", "\ntrain: 2023-11-14T22:",
		"\n3 files are not of the model version", "left out: read " + files[1], "left out: " + files[3],
		"\n1 files were gone"} {
		if code != exitDone || !strings.Contains(text, want) {
			t.Errorf("exit code %d, %q, no %q in %s", code, stderr, want, text)
		}
	}
	empty := t.TempDir()
	refused("no files *.arrow", empty)
	if err := os.WriteFile(filepath.Join(empty, "a.csv"), []byte("features_0,label\n1,0\n2,1\n3,0\n4,1\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got := trainJSON(t, empty, "--recipe", "bottleneck", "--epochs", "1", "--validation",
		"0.5"); got.Rows["rows"] != 4. || got.Rows["order"] != "file" {
		t.Errorf("rows %v", got.Rows)
	}
	if err := os.WriteFile(filepath.Join(empty, "b.csv"), []byte("features_0,features_1,label\n1,2,0\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	refused("rows of another shape than those before: 2 features a row, 1 before", empty)
}

// TestTrainFromFiles: with one mini-batch an epoch the order of rows is of no account, so features that stay in files,
// of every format, give the loss of those in memory.
func TestTrainFromFiles(t *testing.T) {
	table, current := trainTable(240)
	args := []string{"--head", writeHead(t, current), "--recipe", "ce", "--batch", "1000", "--epochs", "3"}
	want := trainJSON(t, append([]string{writeTable(t, "a.npz", table)}, args...)...).Validation.After["nll"].(float64)
	archive := t.TempDir()
	writeTrainArchive(t, archive, "m", "1", table, 70, false)
	for _, file := range []string{writeTable(t, "a.arrow", table), writeTable(t, "a.arrows", table),
		writeTable(t, "a.parquet", table), writeTable(t, "a.csv", table), writeTable(t, "a.npz", table), archive} {
		for _, memory := range []string{"0", "3KiB", "1MiB"} {
			got := trainJSON(t, append([]string{file, "--memory", memory}, args...)...)
			if nll := got.Validation.After["nll"].(float64); nll < want-1e-5 || nll > want+1e-5 ||
				got.Rows["streamed"] != (memory != "1MiB") {
				t.Errorf("%s, --memory %s: NLL %v, rows %v, want %v", filepath.Base(file), memory, nll, got.Rows, want)
			}
		}
	}
	if code, _, stderr := runCommand(t, "train", archive, "--recipe", "bottleneck", "--memory",
		"much"); code != exitUsage ||
		!strings.Contains(stderr, "--memory much: allowed are bytes, with or without KiB, MiB, GiB or TiB") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
