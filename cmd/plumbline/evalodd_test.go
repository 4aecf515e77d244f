package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const threeHeader = "logits_0,logits_1,logits_2,label,region\n"

// TestEvalOddFiles: every key of odd files is a number of its range or null, in text and in JSON, and they can be
// drawn.
func TestEvalOddFiles(t *testing.T) {
	files := oddFiles(t)
	files["one row"] = writeFile(t, "a.csv", "logits_0,logits_1,label\n1,0,0\n")
	files["no weight"] = writeFile(t, "a.csv", "logits_0,logits_1,label,weight\n1,0,0,0\n0,1,1,0\n")
	files["no label"] = writeFile(t, "a.csv", "logits_0,logits_1,label\n1,0,\n0,1,\n")
	for name, file := range files {
		for _, ext := range []string{".svg", ".png"} {
			run(t, "eval", file, "--plot", filepath.Join(t.TempDir(), "a"+ext), "--csf", "negent")
		}
		got := evalJSON[map[string]any](t, file, "--uncertainty", "--resamples", "20")
		empty := name == "no weight" || name == "no label"
		for key, v := range got {
			x, ok := v.(float64)
			if key == "intervals" || key == "n" || key == "zero_rows" ||
				v == nil && (empty || key == "auroc" || key == "fpr95") {
				continue
			}
			if !ok || empty || x < 0 || x > 1 && key != "nll" && key != "brier" {
				t.Errorf("%s: %s is %v", name, key, v)
			}
		}
		code, out, stderr := runCommand(t, "eval", file)
		if empty != strings.Contains(stderr, "none of the 2 rows has a label and a weight above 0") ||
			code != exitDone || strings.Contains(out, "NaN") || strings.Contains(out, "0000000000") {
			t.Errorf("%s: got exit code %d, %q, %q", name, code, out, stderr)
		}
	}
}

// TestFewRows: of few rows eval and fit say that they tell little; not where there are enough, or where folds tell.
func TestFewRows(t *testing.T) {
	file := func(n int) string {
		return writeFile(t, "few.csv", "prob,label\n"+strings.Repeat("0.9,1\n0.2,0\n0.7,0\n0.6,1\n", n/4))
	}
	for _, c := range []struct {
		rows int
		args []string
		want string
	}{
		{24, []string{"eval"}, "24 rows say little: those of a calibrated model would show an ece of 0.1"},
		{100, []string{"eval"}, ""},
		{24, []string{"fit"}, "24 rows are few: --folds 5"},
		{24, []string{"fit", "--folds", "5"}, ""},
		{100, []string{"fit"}, ""},
	} {
		code, _, stderr := runCommand(t, append(c.args, file(c.rows), "--prob", "prob")...)
		if code != exitDone || !strings.Contains(stderr, c.want) || c.want == "" && strings.Contains(stderr, "rows") {
			t.Errorf("%v of %d rows: got exit code %d, %q", c.args, c.rows, code, stderr)
		}
	}
}

// TestEvalSideBySideOfOddFiles: what cannot be, and what means less than it seems, is said with the file's name.
func TestEvalSideBySideOfOddFiles(t *testing.T) {
	three := writeFile(t, "three.csv", threeHeader+"1,0,0,0,a\n0,2,0,1,\n3,0,1,2,b\n1,1,1,0,a\n")
	nan := writeFile(t, "nan.csv", threeHeader+"1,0,0,0,a\n0,nan,0,1,b\n3,0,1,2,b\n")
	two := writeFile(t, "two.csv", "logits_0,logits_1,label\n1,0,0\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{three, nan}, "nan.csv: row 1, column logits_1: NaN or no value, allowed are finite values"},
		{[]string{nan, "--by", "region"}, "nan.csv: row 1, column logits_1: NaN or no value, allowed are finite"},
		{[]string{three, two, "--by", "region"}, "two.csv: --by region: no such text column; the file has none"},
		{[]string{three, "--by", "label"}, "three.csv: --by label: no such text column; there are: region"},
		{[]string{writeFile(t, "bare.csv", threeHeader)}, "bare.csv: no rows"},
		{[]string{writeFile(t, "k.csv", "logits_0,label\n1,0\n")}, "1 scores a row, at least 2"},
		{[]string{three, "--plot", filepath.Join(t.TempDir(), "no", "a.svg")}, "a.svg: no such file or directory"},
		{[]string{writeFile(t, "w.csv", "logits_0,logits_1,label,weight\n1,2,0,1\n4,3,1,nan\n")},
			"row 1, column weight: NaN, allowed are finite values from 0"},
	} {
		code, out, stderr := runCommand(t, append([]string{"eval"}, c.args...)...)
		if code != exitFailed || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("eval %q: got exit code %d, %q, %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
	code, out, stderr := runCommand(t, "eval", three, two)
	if code != exitDone ||
		!strings.Contains(stderr,
			two+" has 2 classes, "+three+" has 3: cwece and cwece_l2 compare at equal numbers only") {
		t.Errorf("got exit code %d, %q, %q", code, out, stderr)
	}
}

// TestEvalEmptySlices: a value without labelled rows has a report without numbers, a panel without marks.
func TestEvalEmptySlices(t *testing.T) {
	file := writeFile(t, "a.csv", threeHeader+"1,0,0,,a\n0,1,0,1,b\n3,0,1,,c\n0,0,nan,,c\n")
	got := evalJSON[struct {
		Files []struct {
			Slices []struct {
				Value   string
				Metrics map[string]any
			}
		}
	}](t, file, "--by", "region", "--plot", filepath.Join(t.TempDir(), "a.png"))
	for _, s := range got.Files[0].Slices {
		n := s.Metrics["n"].(float64)
		if (n == 1) != (s.Value == "b") || (s.Metrics["ece"] == nil) != (n == 0) {
			t.Errorf("%s: %v", s.Value, s.Metrics)
		}
	}
}
