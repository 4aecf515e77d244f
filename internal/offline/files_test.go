package offline

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/plumbline/plumbline/arrowio/table"
)

// variant is a file that another tool wrote, and how it is read.
type variant struct {
	File, Reference string
	Times           any // true, or the unit that the tool rounded to
	Options         map[string]string
}

func (v variant) table(dir string) table.Options {
	o := table.Options{Logits: v.Options["logits"], Probs: v.Options["prob"], Labels: v.Options["label"],
		Time: v.Options["ts"]}
	if filepath.Ext(o.Labels) == ".npy" {
		o.Labels = filepath.Join(dir, o.Labels)
	}
	if c := v.Options["classes"]; c != "" {
		o.Classes = strings.Split(c, ",")
	}
	return o
}

// TestFilesOfOtherTools: every file of testdata/files, written by pandas, pyarrow, polars, NumPy and json, has the
// numbers of its reference.
func TestFilesOfOtherTools(t *testing.T) {
	if n := checkVariants(t, "testdata/files"); n < 70 {
		t.Errorf("%d files, there are more", n)
	}
}

// TestFilesWrittenNow: the same with what the tools installed here write, and more rows.
func TestFilesWrittenNow(t *testing.T) {
	python := os.Getenv("PLUMBLINE_FILES_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import numpy, pandas, polars, pyarrow, sklearn").Run(); err != nil {
		t.Skip("no Python with NumPy, pandas, polars, pyarrow and scikit-learn (PLUMBLINE_FILES_PYTHON)")
	}
	dir := t.TempDir()
	out, err := exec.Command(python, "-W", "ignore", "testdata/files/variants.py", dir, "3000").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkVariants(t, dir)
}

// checkVariants evaluates every file of a directory, and returns how many there are.
func checkVariants(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "variants.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []variant
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		t.Run(v.File, func(t *testing.T) {
			reference := filepath.Join(dir, v.Reference+".npz")
			want, err := EvalOptions{}.File(reference)
			if err != nil {
				t.Fatal(err)
			}
			got, err := EvalOptions{Table: v.table(dir)}.File(filepath.Join(dir, v.File))
			if err != nil {
				t.Fatal(err)
			}
			sameNumbers(t, got, want)
			if v.Times != false {
				sameTimes(t, v, dir, reference)
			}
		})
	}
	return len(all)
}

func sameNumbers(t *testing.T, got, want EvalResult) {
	t.Helper()
	numbers := func(r EvalResult) map[string]any {
		b, err := json.Marshal(r.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	g, w := numbers(got), numbers(want)
	if g["n"] == float64(0) || len(w) < 10 {
		t.Errorf("%v rows, %d metrics", g["n"], len(w))
	}
	for name, want := range w {
		x, number := want.(float64)
		y, _ := g[name].(float64)
		if number && !(math.Abs(x-y) <= 1e-9) || !number && want != nil && g[name] == nil {
			t.Errorf("%s is %v, want %v", name, g[name], want)
		}
	}
}

func sameTimes(t *testing.T, v variant, dir, reference string) {
	t.Helper()
	want, err := table.Open(reference, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.Open(filepath.Join(dir, v.File), v.table(dir))
	if err != nil {
		t.Fatal(err)
	}
	if got.NoTime != nil || len(got.TS) != len(want.TS) {
		t.Fatalf("%d times, want %d: %v", len(got.TS), len(want.TS), got.NoTime)
	}
	for i, ns := range want.TS {
		most := int64(0)
		if v.Times == "us" { // float64 has no more digits
			most = 1000
		}
		if d := got.TS[i] - ns; d > most || d < -most {
			t.Fatalf("row %d is at %d, want %d", i, got.TS[i], ns)
		}
	}
}

// TestFilesOfNoFormat: what is no table is refused by what it is; nothing of it reaches the terminal.
func TestFilesOfNoFormat(t *testing.T) {
	for content, want := range map[string]string{
		"\x80\x05\x95\x10\x00":                                  "a Python pickle",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR":                   "begins with the bytes 89 50 4e 47",
		"\x7fELF\x02\x01\x01\x00":                               "begins with the bytes 7f 45 4c 46",
		"\xff\xfel\x00o\x00g\x00":                               "UTF-16",
		"FEA1\x00\x00":                                          "Feather version 1",
		"PK\x05\x06" + strings.Repeat("\x00", 18):               "a zip archive without arrays",
		"\x1f\x8b\x08\x00garbage":                               "",
		"a\x1b[31mb,c\n1,2\n":                                   `"a\x1b[31mb"`,
		"logits_0,logits_1,label\n1,2,\x1b]0;x\n1,2,y\n1,2,z\n": "different texts",
		"\"unclosed\n":                                          "",
		"{\"a\": \x1b}":                                         "JSON",
		"[1, 2, 3]":                                             "an object is needed",
		`{"y_true":{"0":1},"y_prob":{"0":0.5}}`:                 "there are: y_prob.0, y_true.0",
		"y_true,y_pred\n1,0\n":                                  "names; there are: y_true, y_pred",
		"y_true,prediction\n1,0.0\n0,1.0\n":                     "predicted classes are no scores",
		"y_true,y_prob\n0.7,0.5\n":                              "0.7 at row 0 is no whole number: a label is a class",
		"label,probs_0,probs_1,probs_2\ncat,1,0,0\ndog,0,1,0\n": "--classes must name the classes",
		"label,y_prob\ncat,.9\ndog,.8\nemu,.7\n":                "must be 1 where that was right, else 0",
		"label,probs_0,probs_1,probs_2\n" +
			"a,1,0,0\nb,1,0,0\nc,1,0,0\nd,1,0,0\n": "there must be a score for each",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := table.Open(path, table.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
			continue
		}
		if text := err.Error(); slices.ContainsFunc([]rune(text), func(r rune) bool {
			return !unicode.IsPrint(r) || r == unicode.ReplacementChar
		}) {
			t.Errorf("%q: not for a terminal: %q", content, text)
		}
	}
}
