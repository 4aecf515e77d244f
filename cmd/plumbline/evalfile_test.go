package main

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/float16"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/metric"
)

// TestEvalEveryFormat: one table has the same metrics in every format.
func TestEvalEveryFormat(t *testing.T) {
	for _, kind := range []struct{ double, probs bool }{{true, false}, {true, true}} { // float64, which CSV keeps
		rows := fullTable(300, 5, kind.double, kind.probs)
		want := evalJSON[map[string]any](t, writeTable(t, "a.arrow", rows))
		if want["n"] != 300. || want["nll"] == nil {
			t.Fatalf("got %v", want)
		}
		for _, ext := range table.Extensions() {
			got := evalJSON[map[string]any](t, writeTable(t, "a"+ext, rows))
			for key, v := range want {
				if got[key] != v {
					t.Errorf("%s, probabilities %v: %s is %v, want %v", ext, kind.probs, key, got[key], v)
				}
			}
		}
	}
}

// TestEvalHalfPrecision: float16 scores are those numbers in float32.
func TestEvalHalfPrecision(t *testing.T) {
	table := fullTable(200, 4, false, false)
	var data []byte
	for i, x := range table.Scores32 {
		h := float16.New(x)
		table.Scores32[i] = h.Float32()
		data = binary.LittleEndian.AppendUint16(data, h.Uint16())
	}
	var labels []byte
	for _, y := range table.Label {
		labels = append(labels, byte(y))
	}
	table.Weight = nil // the npz file has none
	path := filepath.Join(t.TempDir(), "half.npz")
	writeArrays(t, path, map[string][]byte{"logits": npyFile("<f2", "200, 4", data),
		"labels": npyFile("|u1", "200,", labels)})
	got, want := evalJSON[map[string]any](t, path), evalJSON[map[string]any](t, writeTable(t, "a.arrow", table))
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s: got %v, want %v", key, got[key], v)
		}
	}
}

func npyFile(descr, shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape)
	return append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), byte(len(header) >> 8)})+header), data...)
}

func writeArrays(t *testing.T, path string, arrays map[string][]byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, body := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEvalBinaryColumn: one score column of a binary classifier is that of class 1.
func TestEvalBinaryColumn(t *testing.T) {
	two := writeFile(t, "two.csv", "probs_0,probs_1,label\n.75,.25,0\n.25,.75,1\n.75,.25,1\n0,1,1\n")
	one := writeFile(t, "one.csv", "prob,label\n.25,0\n.75,1\n.25,1\n1,1\n")
	want := evalJSON[map[string]any](t, two)
	for key, v := range evalJSON[map[string]any](t, one) {
		if want[key] != v {
			t.Errorf("%s: got %v, want %v", key, v, want[key])
		}
	}
}

// TestEvalUncertainty: every calibration error has its interval and null expectation, the ECE those it always had.
func TestEvalUncertainty(t *testing.T) {
	file := writeTable(t, "a.npz", fullTable(400, 3, false, false))
	type output struct {
		ECE, ECENull, ECELo, ECEHi float64
		Intervals                  map[string]map[string]float64
	}
	raw := evalJSON[map[string]any](t, file, "--uncertainty", "--resamples", "200", "--seed", "4")
	plain := evalJSON[map[string]any](t, file, "--resamples", "200", "--seed", "4")
	if plain["intervals"] != nil {
		t.Error("intervals without --uncertainty")
	}
	intervals := evalJSON[output](t, file, "--uncertainty", "--resamples", "200", "--seed", "4").Intervals
	for _, key := range metric.UncertaintyKeys {
		iv, value := intervals[key], raw[key].(float64)
		if !(iv["lo"] <= value && value <= iv["hi"] && iv["null"] <= iv["null_hi"]) {
			t.Errorf("%s = %v: got %v", key, value, iv)
		}
	}
	if iv := intervals["ece"]; iv["lo"] != plain["ece_lo"] || iv["hi"] != plain["ece_hi"] ||
		iv["null"] != plain["ece_null"] {
		t.Errorf("ece: got %v, want %v, %v, %v", iv, plain["ece_lo"], plain["ece_hi"], plain["ece_null"])
	}
	out := run(t, "eval", file, file, "--uncertainty", "--resamples", "50")
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if n := strings.Count(lines[0], "95 % interval  if calibrated"); n != 2 {
		t.Errorf("got the header %q, want the interval of both files", lines[0])
	}
	for _, l := range lines[1:] {
		if key, _, _ := strings.Cut(l, " "); (intervals[key] != nil) != (strings.Count(l, "[") == 2) {
			t.Errorf("got %q, want two intervals for a calibration error and none for others", l)
		}
		if len(l) > len(lines[0]) {
			t.Errorf("%q is longer than the header", l)
		}
	}
}

// TestEvalTableInFull is a table of two reports; files of one folder go by their names.
func TestEvalTableInFull(t *testing.T) {
	file := writeFile(t, "four.csv", fourRows)
	out := run(t, "eval", file, file)
	var got []string
	for _, l := range strings.Split(out, "\n") {
		for _, key := range []string{"metric ", "n ", "accuracy ", "ece ", "auroc "} {
			if strings.HasPrefix(l, key) {
				got = append(got, strings.Join(strings.Fields(l), " "))
			}
		}
	}
	want := "metric four.csv four.csv\nn 4 4\naccuracy 0.750000 0.750000\nece 0.062500 0.062500\n" +
		"auroc 0.666667 0.666667"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// TestEvalAwkwardRows: what is undefined is null, and nothing fails.
func TestEvalAwkwardRows(t *testing.T) {
	for name, text := range map[string]string{
		"one row":             "1,0,0\n",
		"one class":           "1,0,0\n0,2,0\n3,0,0\n",
		"all right, certain":  "80,-80,0\n-80,80,1\n",
		"identical":           "1,1,0\n1,1,0\n1,1,1\n",
		"no label anywhere":   "1,0,\n0,1,\n",
		"some without labels": "1,0,0\n0,1,\n2,1,1\n",
	} {
		file := writeFile(t, "a.csv", "logits_0,logits_1,label\n"+text)
		got := evalJSON[map[string]any](t, file, "--uncertainty", "--detail", "--resamples", "50")
		for key, v := range got {
			if x, ok := v.(float64); ok && (math.IsNaN(x) || key != "n" && key != "nll" && (x < 0 || x > 2)) {
				t.Errorf("%s: %s is %v", name, key, x)
			}
		}
		run(t, "eval", file, "--uncertainty", "--resamples", "50", "--plot", filepath.Join(t.TempDir(), "a.svg"))
	}
}

func TestEvalNamesRowAndColumn(t *testing.T) {
	three := writeTable(t, "three.arrow", fullTable(30, 3, false, false))
	_, cal3 := fitFile(t, three, "vector")
	four := writeFile(t, "four.csv", fourRows)
	bad := fullTable(5, 3, false, false)
	bad.Scores32[3*3+2] = float32(math.Inf(1))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{writeTable(t, "inf.parquet", bad)}, exitFailed,
			"inf.parquet: row 3, column logits_2: +Inf, allowed are finite values"},
		{[]string{writeTable(t, "inf.npz", bad), "--calibrator", cal3}, exitFailed,
			"inf.npz: row 3, column logits_2: +Inf"},
		{[]string{writeFile(t, "nan.csv", "logit,label\n1,0\n,1\n")}, exitFailed, "row 1, column logit: NaN"},
		{[]string{writeFile(t, "w.csv", "logit,label,weight\n1,0,1\n1,1,-2\n")}, exitFailed,
			"row 1, column weight: -2"},
		{[]string{writeFile(t, "empty.csv", "")}, exitFailed, "empty.csv: the file is empty"},
		{[]string{four, "--calibrator", cal3}, exitFailed, "cal.json is for 3 classes, " + four + " has 2"},
		{[]string{four, "--calibrator", four}, exitFailed, "calibrator format"},
		{[]string{four, "--calibrator", ""}, exitUsage, `--calibrator "": must name a file`},
		{[]string{four, "--resamples", "0"}, exitUsage, "--resamples 0: allowed 1..16777216"},
		{[]string{four, "--resamples", "-1"}, exitUsage, "--resamples -1: allowed 1.."},
		{[]string{four, "--soft-temperature", "-1"}, exitUsage, "--soft-temperature -1: allowed"},
	} {
		code, _, stderr := runCommand(t, append([]string{"eval"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("eval %q: got exit code %d, stderr %q, want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
	// An unlabelled row and a weight that is not used are nobody's error.
	run(t, "eval", writeFile(t, "un.csv", "logit,label\n1,0\n,\n"))
	run(t, "eval", writeFile(t, "now.csv", "logit,label,weight\n1,0,1\n1,1,-2\n"), "--no-weights")
}
