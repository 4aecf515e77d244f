package main

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

// badTables are tables with something wrong in row 30, by what it is.
func badTables() map[string]*table.Table {
	out := map[string]*table.Table{}
	change := func(name string, f func(*table.Table)) {
		table, _ := trainTable(60)
		f(table)
		out[name] = table
	}
	change("nan", func(t *table.Table) { t.Features[30*t.D+1] = float32(math.NaN()) })
	change("all", func(t *table.Table) {
		for i := range t.Features {
			t.Features[i] = float32(math.Inf(1))
		}
	})
	change("label", func(t *table.Table) { t.Label[30] = 99 })
	change("one", func(t *table.Table) {
		for i := range t.Label {
			t.Label[i] = 1
		}
	})
	change("later", func(t *table.Table) { // the newest rows, at the front, have no class 0
		for i := range t.Label[:20] {
			t.Label[i] = max(t.Label[i], 1)
		}
	})
	change("scale", func(t *table.Table) {
		for i := range t.Features {
			t.Features[i] *= 1e4
		}
	})
	change("large", func(t *table.Table) { t.Features[7*t.D+3] = -3e38 })
	change("logits", func(t *table.Table) { t.K, t.Scores32 = 7, make([]float32, t.N*7) })
	return out
}

// TestTrainBadRows: an error names the file, the column, the row in it, the value, and what is allowed.
func TestTrainBadRows(t *testing.T) {
	tables := badTables()
	good, current := trainTable(60)
	headFile := writeHead(t, current)
	dir := t.TempDir()
	for name, table := range map[string]*table.Table{"a": good, "b": tables["label"]} {
		if err := os.Rename(writeTable(t, name+".arrow", table), filepath.Join(dir, name+".arrow")); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(file, want string, args ...string) {
		t.Helper()
		code, _, stderr := runCommand(t, append([]string{"train", file, "--epochs", "1", "--recipe", "ce"}, args...)...)
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: got exit code %d, %q, want %q", file, code, stderr, want)
		}
	}
	for _, ext := range []string{".arrow", ".parquet"} {
		file := func(name string) string { return writeTable(t, name+ext, tables[name]) }
		all := file("all")
		refused(all, all+": none of the 60 rows has features and a label; 60 with features that are not finite\n"+
			"not finite: "+
			all+": column features: row 0: value 0 is +Inf as float32, allowed are finite numbers", "--head", headFile)
		refused(file("large"),
			"training diverged: a smaller --rate may help, or features of another scale: the largest is -3e+38, "+
				"value 3 of its row", "--head", headFile, "--rate", "10")
		refused(file("label"), "label"+ext+": column label: row 30: label 99, allowed 0..4", "--head", headFile)
		refused(file("one"), "one"+ext+": all 48 training rows are of class 1, allowed are rows of at least 2 classes",
			"--head", headFile)
		refused(file("logits"), "logits"+ext+": column logits or probs is of 7 classes, --head "+headFile+" has 5",
			"--head", headFile)
	}
	missing := filepath.Join(dir, "missing.npz")
	for _, flag := range []string{"--validation", "--holdout"} {
		refused(writeTable(t, "a.arrow", good), flag+": read "+missing, "--head", headFile, flag, missing)
	}
	refused(dir, filepath.Join(dir, "b.arrow")+": column label: row 30: label 99, allowed 0..4", "--head", headFile)

	nan := writeTable(t, "nan.arrow", tables["nan"])
	out := run(t, "train", nan, "--epochs", "1", "--recipe", "ce", "--head", headFile)
	if want := "left out 1 with features that are null or not finite"; !strings.Contains(out, want) ||
		!strings.Contains(out, "not finite: "+nan+": column features: row 30: value 1 is NaN as float32") {
		t.Errorf("got %q, want %q and where", out, want)
	}
}

// TestTrainSaysWhatIsWrong: a training that ends says what its result should not be trusted for, or came to nothing of.
func TestTrainSaysWhatIsWrong(t *testing.T) {
	tables := badTables()
	many, current := trainTable(600)
	tables["many"] = many
	headFile := writeHead(t, current)
	for _, c := range []struct {
		table, want string
		args        []string
	}{
		{"later", "warning: 1 of 5 classes have no validation rows", nil},
		{"scale", "features scaled while it trained", nil},
		{"scale", "features scaled while it trained", []string{"--memory", "1KiB"}},
		{"many", "warning: the new head is worse than the current one on the validation rows",
			[]string{"--rate", "100", "--keep-last"}},
	} {
		args := append([]string{"train", writeTable(t, c.table+".arrow", tables[c.table]), "--head", headFile,
			"--recipe", "ce", "--epochs", "1"}, c.args...)
		if out := run(t, args...); !strings.Contains(out, c.want) {
			t.Errorf("%s: got %q, want %q in it", c.table, out, c.want)
		}
	}
}

// TestTrainBadArrays: what is wrong with the times of an .npz file is said, and no other order taken in silence.
func TestTrainBadArrays(t *testing.T) {
	x, y, ts := make([]float32, 120), make([]int64, 60), make([]float64, 60)
	for i := range y {
		x[2*i], y[i] = float32(i%2), int64(i%2)
	}
	for _, c := range []struct {
		arrays map[string]string
		want   string
	}{
		{map[string]string{"ts": npyText("<f8", "60,", ts)},
			"array ts of type float64 has shape [60], allowed are 60 integers or datetime64"},
		{map[string]string{"ts": npyText("<i8", "59,", y[:59])},
			"array ts of type int64 has shape [59], allowed are 60 integers or datetime64"},
		{map[string]string{"y": npyText("<i8", "60,", append([]int64{1 << 40}, y[1:]...))},
			"array y: label 1099511627776 at row 0, allowed are 0..2147483646, and -1 where not known"},
		{map[string]string{"features": npyText("<f4", "0, 2", x[:0])}, "array features has no rows"},
		// Without logits or a head the labels say K: one stray label must not take all memory.
		{map[string]string{"y": npyText("<i8", "60,", append([]int64{2_000_000_000}, y[1:]...))},
			"array y: row 0: label 2000000000, allowed 0..131071 where neither"},
	} {
		arrays := map[string]string{"features": npyText("<f4", "60, 2", x), "y": npyText("<i8", "60,", y)}
		for name, text := range c.arrays {
			arrays[name] = text
		}
		code, _, stderr := runCommand(t, "train", writeNPZ(t, false, arrays), "--recipe", "bottleneck", "--epochs", "1")
		if code != exitFailed || !strings.Contains(stderr, c.want) {
			t.Errorf("got exit code %d, %q, want %q", code, stderr, c.want)
		}
	}
	file := writeNPZ(t, false, map[string]string{"features": npyText("<f4", "60, 2", x)})
	if _, _, stderr := runCommand(t, "train", file, "--recipe", "bottleneck", "--labels",
		"l"); !strings.Contains(stderr, `no labels: no array "l"; there are: features`) {
		t.Errorf("got %q", stderr)
	}
}

// TestTrainerBadRequests: what no attempt can mend ends a job.
func TestTrainerBadRequests(t *testing.T) {
	tables := badTables()
	for _, c := range []struct {
		table   string
		classes int
		want    string
	}{
		{"one", 5, "all 48 training rows are of class 1, allowed are rows of at least 2 classes"},
		{"logits", 5, "rows of 7 classes by their column logits or probs, the request is of 5"},
		{"nan", -1, "classes -1, allowed are 0 (by the rows) and 2..131072"},
		{"nan", 2_000_000_000, "classes 2000000000, allowed are 0 (by the rows) and 2..131072"},
	} {
		cfg := config.Default()
		cfg.Trainer.Files = []string{writeTable(t, "a.arrow", tables[c.table])}
		request := record.Finetune{ID: "m/1+head9", Model: "m", Version: "1", Classes: c.classes, Seed: 3,
			Data: record.FinetuneData{From: record.At(0), To: record.At(1 << 62)}}
		_, err := trainerd.Loader{Config: cfg, Log: slog.New(slog.DiscardHandler)}.Load(t.Context(), request)
		if !errors.Is(err, service.ErrHopeless) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.table, err, c.want)
		}
	}
}
