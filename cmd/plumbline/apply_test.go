package main

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/testsize"
)

// fullTable has every column of the schema, in float32 or float64, logits or probabilities. Its labels follow
// softmax(z/2), about: what a fit finds is not the identity.
func fullTable(n, k int, double, probs bool) *table.Table {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
	t := &table.Table{N: n, K: k, Probs: probs, D: 2, Model: "net", Version: "3",
		Slices: map[string][]string{"region": nil}}
	for i := range n {
		row, p := make([]float64, k), make([]float64, k)
		for j := range row {
			row[j] = 3 * rng.NormFloat64()
		}
		cal, err := calibrator.NewTemperature(2)
		if err != nil {
			panic(err)
		}
		cal.Apply(p, row)
		u, y := rng.Float64(), 0
		for ; y < k-1 && u >= p[y]; y++ {
			u -= p[y]
		}
		if probs {
			calibrator.Identity{}.Apply(row, row)
		}
		for _, v := range row {
			if double {
				t.Scores64 = append(t.Scores64, v)
			} else {
				t.Scores32 = append(t.Scores32, float32(v))
			}
		}
		t.Label = append(t.Label, int32(y))
		t.IDs = append(t.IDs, "id-"+string(rune('a'+i%26)))
		t.TS = append(t.TS, 1_700_000_000_000_000_000+int64(i))
		t.Weight, t.Served = append(t.Weight, float32(1+i%3)), append(t.Served, 0.5)
		t.Features = append(t.Features, float32(i), -1)
		t.Slices["region"] = append(t.Slices["region"], []string{"eu", "us", ""}[i%3])
	}
	return t
}

func writeTable(t *testing.T, name string, rows *table.Table) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := table.Write(path, rows); err != nil {
		t.Fatal(err)
	}
	return path
}

func openTable(t *testing.T, path string) *table.Table {
	t.Helper()
	rows, err := table.Open(path, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// run runs a command that must succeed, and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	code, out, stderr := runCommand(t, args...)
	if code != exitDone {
		t.Fatalf("plumbline %s: exit code %d, stderr %q", strings.Join(args, " "), code, stderr)
	}
	return out
}

// fitFile fits on a file and returns the calibrator and its file.
func fitFile(t *testing.T, file, method string) (calibrator.Calibrator, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "cal.json")
	run(t, "fit", file, "--method", method, "-o", out)
	c, err := offline.ReadCalibrator(out)
	if err != nil {
		t.Fatal(err)
	}
	return c, out
}

// reference is Calibrator.Apply, row by row.
func reference(c calibrator.Calibrator, t *table.Table) []float64 {
	out := make([]float64, t.N*t.K)
	z := make([]float64, t.K)
	for i := range t.N {
		for j := range z {
			at := i*t.K + j
			switch {
			case t.Scores64 != nil && t.Probs:
				z[j] = math.Log(t.Scores64[at])
			case t.Scores64 != nil:
				z[j] = t.Scores64[at]
			case t.Probs:
				z[j] = math.Log(float64(t.Scores32[at]))
			default:
				z[j] = float64(t.Scores32[at])
			}
		}
		c.Apply(out[i*t.K:(i+1)*t.K], z)
	}
	return out
}

// TestApplyEveryFormat: the numbers are those of Calibrator.Apply, and every other column stays, from any format and
// type to any format and type.
func TestApplyEveryFormat(t *testing.T) {
	c, cal := fitFile(t, writeTable(t, "fit.parquet", fullTable(300, 4, false, false)), "vector")
	for _, in := range table.Extensions() {
		kinds := []struct{ double, probs bool }{{true, false}, {false, false}, {false, true}}
		for _, kind := range kinds[:testsize.Short(1, len(kinds))] {
			file := writeTable(t, "in"+in, fullTable(50, 4, kind.double, kind.probs))
			source := openTable(t, file)
			want := reference(c, source)
			for _, ext := range table.Extensions() {
				for _, double := range []bool{false, true} {
					out := filepath.Join(t.TempDir(), "out"+ext)
					args := []string{"apply", cal, file, "-o", out}
					if double {
						args = append(args, "--float64")
					}
					run(t, args...)
					checkApplied(t, strings.Join(args[2:], " "), source, openTable(t, out), want, double)
				}
			}
		}
	}
}

func checkApplied(t *testing.T, what string, source, got *table.Table, want []float64, double bool) {
	t.Helper()
	if !got.Probs || got.N != source.N || got.K != source.K {
		t.Fatalf("%s: got probabilities %v of %d×%d", what, got.Probs, got.N, got.K)
	}
	for i, p := range want {
		var q float64
		switch {
		case got.Scores64 != nil && double:
			q = got.Scores64[i]
		case got.Scores64 != nil: // CSV, read in float64 as it is written
			p, q = float64(float32(p)), float64(float32(got.Scores64[i]))
		case !double:
			p, q = float64(float32(p)), float64(got.Scores32[i])
		default:
			t.Fatalf("%s: float32, want float64", what)
		}
		if p != q {
			t.Fatalf("%s: score %d is %v, want %v", what, i, q, p)
		}
	}
	a, b := *source, *got
	for _, x := range []*table.Table{&a, &b} {
		x.Scores32, x.Scores64, x.Probs, x.Source, x.Columns = nil, nil, false, "", nil
		x.NoTime = nil
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s: other columns: got %+v, want %+v", what, b, a)
	}
}

func TestApplyToStdout(t *testing.T) {
	_, cal := fitFile(t, writeFile(t, "four.csv", fourRows), "identity")
	got := run(t, "apply", cal, writeFile(t, "in.csv", "logits_0,logits_1,label,tier\n0,0,1,x\n"), "-o", "-")
	if want := "probs_0,probs_1,label,tier\n0.5,0.5,1,x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestApplyNamesWhatItLeavesOut: what has no place in the result, such as other lists, and numbers of Parquet.
func TestApplyNamesWhatItLeavesOut(t *testing.T) {
	_, cal := fitFile(t, writeFile(t, "four.csv", fourRows), "identity")
	in := filepath.Join(t.TempDir(), "in.jsonl")
	rows := `{"logits":[0,0],"box":[7,1],"tier":"x"}` + "\n" + `{"logits":[0,0],"box":[8,1],"tier":"x"}` + "\n"
	if err := os.WriteFile(in, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCommand(t, "apply", cal, in, "-o", "-")
	if want := "probs_0,probs_1,tier\n0.5,0.5,x\n0.5,0.5,x\n"; code != exitDone || out != want ||
		stderr != in+": columns left out: box\n" {
		t.Errorf("exit code %d, %q, stderr %q", code, out, stderr)
	}
}

// TestApplyToOtherScores: of methods that tell logits from their probabilities, the fit says which they were fitted on,
// and what applies them, that probabilities may be the wrong ones.
func TestApplyToOtherScores(t *testing.T) {
	logits := writeTable(t, "l.npz", fullTable(300, 3, true, false))
	probs := writeTable(t, "p.npz", fullTable(300, 3, true, true))
	for _, c := range []struct {
		method string
		tells  bool
	}{{"vector", true}, {"matrix", true}, {"class_temperature", true}, {"temperature", false}, {"dirichlet", false}} {
		cal := filepath.Join(t.TempDir(), "cal.json")
		for file, wrong := range map[string]bool{logits: false, probs: true} {
			_, out, _ := runCommand(t, "fit", file, "--method", c.method, "-o", cal, "--force")
			if says := strings.Contains(out, "warning: fitted on probabilities: it is wrong for logits"); says !=
				(wrong && c.tells) {
				t.Errorf("fit of %s to %s: %s", c.method, file, out)
			}
			for _, args := range [][]string{{"apply", cal, file, "-o", "-"}, {"eval", "--calibrator", cal, file}} {
				_, _, stderr := runCommand(t, args...)
				if says := strings.Contains(stderr, file+" holds probabilities: "+cal+" ("+c.method+
					") is wrong for them if it was fitted on logits"); says != (wrong && c.tells) {
					t.Errorf("%v: %s", args, stderr)
				}
			}
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	three := writeTable(t, "three.npz", fullTable(30, 3, false, false))
	_, cal3 := fitFile(t, three, "vector")
	_, cal := fitFile(t, three, "temperature")
	dir := t.TempDir()
	there, free := filepath.Join(dir, "there.csv"), filepath.Join(dir, "free.csv")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	four := writeFile(t, "four.csv", fourRows)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{cal}, exitUsage, "takes CALIBRATOR FILE[:array]"},
		{[]string{cal, three}, exitUsage, "-o: a file is needed"},
		{[]string{cal, three, "-o", "x.xls"}, exitUsage,
			`extension ".xls", allowed are .arrow, .arrows, .csv, .ipc, .npz, .parquet, or -`},
		{[]string{cal, three, "-o", "-", "--json"}, exitUsage, "--json: not with -o -"},
		{[]string{cal, three, "-o", there}, exitFailed, "there.csv: the file is there; --force replaces it"},
		{[]string{cal3, four, "-o", free}, exitFailed, "cal.json is for 3 classes, " + four + " has 2"},
		{[]string{free, three, "-o", free}, exitFailed, "no such file"},
		{[]string{three, three, "-o", free}, exitFailed, "calibrator format"},
		{[]string{cal, writeFile(t, "nan.csv", "logits_0,logits_1\n1,2\n3,\n"), "-o", free}, exitFailed,
			"row 1, column logits_1: NaN or no value, allowed are finite values"},
		{[]string{cal, writeFile(t, "gap.csv", "probs_0,probs_1\n.5,\n"), "-o", free}, exitFailed,
			"row 0, column probs_1: NaN or no value, allowed are values in [0, 1]\n"},
		{[]string{cal, writeFile(t, "sum.csv", "probs_0,probs_1\n.5,.2\n"), "-o", free}, exitFailed,
			"row 0, columns probs: sum 0.7, allowed is within 0.05 of 1"},
		{[]string{cal, writeFile(t, "prob.csv", "prob\n1.5\n"), "-o", free}, exitFailed,
			"row 0, column prob: 1.5, allowed are values in [0, 1]"},
		{[]string{cal, writeFile(t, "percent.csv", "probs_0,probs_1\n40,60\n"), "-o", free}, exitFailed,
			"row 0, column probs_0: 40, allowed are values in [0, 1]; the row sums to 100: divide percentages by 100"},
		{[]string{cal, writeFile(t, "empty.csv", ""), "-o", free}, exitFailed, "empty.csv: the file is empty"},
	} {
		code, _, stderr := runCommand(t, append([]string{"apply"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("apply %q: got exit code %d, stderr %q, want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want nothing but the file that was there", left, err)
	}
	run(t, "apply", cal, three, "-o", there, "--force")
	if openTable(t, there).N != 30 {
		t.Error("--force did not replace the file")
	}
}
