package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/offline"
)

const slicedHeader = "probs_0,probs_1,label,region,tier\n"

// slicedLines are CSV rows by region; one has none.
func slicedLines() (all []string, byRegion map[string][]string) {
	rng := rand.New(rand.NewPCG(1, 2))
	byRegion = make(map[string][]string)
	for range 200 {
		p, region := 0.01+0.98*rng.Float64(), []string{"eu", "us", "asia", ""}[rng.IntN(4)]
		line := fmt.Sprintf("%.6f,%.6f,%d,%s,%d\n", p, 1-p, rng.IntN(2), region, rng.IntN(2))
		all = append(all, line)
		byRegion[region] = append(byRegion[region], line)
	}
	return all, byRegion
}

type byOutput struct {
	By    string
	Files []struct {
		File    string
		Metrics map[string]any
		Slices  []struct {
			Value   string
			Metrics map[string]any
		}
	}
}

func evalJSON[T any](t *testing.T, args ...string) (out T) {
	t.Helper()
	code, stdout, stderr := runCommand(t, append([]string{"eval", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, stdout, stderr)
	}
	return out
}

// TestEvalByEqualsFilteredFiles: each slice's numbers are those of a file with its rows only, in every format.
func TestEvalByEqualsFilteredFiles(t *testing.T) {
	all, byRegion := slicedLines()
	csv := writeFile(t, "all.csv", slicedHeader+strings.Join(all, ""))
	rows, err := table.Open(csv, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := []string{csv}
	for _, ext := range []string{".arrow", ".parquet"} {
		file := filepath.Join(t.TempDir(), "all"+ext)
		if err := table.Write(file, rows); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	whole := evalJSON[map[string]any](t, csv)
	got := evalJSON[byOutput](t, append([]string{"--by", "region"}, files...)...)
	if got.By != "region" || len(got.Files) != len(files) {
		t.Fatalf("got by %q and %d files, want region and %d", got.By, len(got.Files), len(files))
	}
	for i, f := range got.Files {
		if f.File != files[i] || !reflect.DeepEqual(f.Metrics, whole) {
			t.Errorf("%s: got the whole as %v, want %v", f.File, f.Metrics, whole)
		}
		var values []string
		for _, s := range f.Slices {
			values = append(values, s.Value)
			want := evalJSON[map[string]any](t, writeFile(t, "slice.csv", slicedHeader+strings.Join(byRegion[s.Value],
				"")))
			if !reflect.DeepEqual(s.Metrics, want) {
				t.Errorf("%s, region %q: got %v, want %v", f.File, s.Value, s.Metrics, want)
			}
		}
		if want := []string{"", "asia", "eu", "us"}; !reflect.DeepEqual(values, want) {
			t.Errorf("%s: got the values %q, want %q", f.File, values, want)
		}
	}
}

func TestEvalByTable(t *testing.T) {
	all, _ := slicedLines()
	file := writeFile(t, "all.csv", slicedHeader+strings.Join(all, ""))
	_, out, _ := runCommand(t, "eval", file, "--by", "tier")
	header, _, _ := strings.Cut(out, "\n")
	if got, want := strings.Fields(header), []string{"metric", file, "tier=0", "tier=1"}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("got the columns %q, want %q", got, want)
	}
}

// TestEvalByModel: a column model of one value is kept apart by the reader.
func TestEvalByModel(t *testing.T) {
	file := writeFile(t, "m.csv", "probs_0,probs_1,label,model\n.75,.25,0,net\n.25,.75,1,net\n")
	got := evalJSON[byOutput](t, file, "--by", "model").Files[0]
	if len(got.Slices) != 1 || got.Slices[0].Value != "net" || !reflect.DeepEqual(got.Slices[0].Metrics, got.Metrics) {
		t.Errorf("got %+v, want one slice, net, equal to the whole", got)
	}
}

func TestEvalByRefuses(t *testing.T) {
	all, _ := slicedLines()
	file := writeFile(t, "all.csv", slicedHeader+strings.Join(all, ""))
	many := "probs_0,probs_1,label,user\n"
	for i := range offline.MaxSliceValues + 1 {
		many += fmt.Sprintf(".5,.5,0,u%d\n", i)
	}
	for _, c := range []struct {
		file, by string
		code     int
		want     string
	}{
		{file, "country", exitFailed, "--by country: no such text column; there are: region, tier"},
		{writeFile(t, "four.csv", fourRows), "region", exitFailed,
			"--by region: no such text column; the file has none"},
		{writeFile(t, "many.csv", many), "user", exitFailed, "column user has more than 1000 values"},
		{file, "", exitUsage, `--by "": must name a column`},
	} {
		code, _, stderr := runCommand(t, "eval", c.file, "--by", c.by)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("--by %q: got exit code %d, stderr %q, want %d and %q", c.by, code, stderr, c.code, c.want)
		}
	}
}
