package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

// times are the only numbers of a report that differ from run to run.
var times = regexp.MustCompile(` *[0-9.]+ m?s\b`)

func timeless(s string) string { return times.ReplaceAllString(s, " TIME") }

type fitOutput struct {
	Method     string
	Fit        struct{ Rows int }
	Split      *offline.Split
	Calibrator json.RawMessage
	Holdout    *struct {
		Before, After map[string]any
		Difference    map[string]float64 `json:"nll_difference"`
	}
}

type compareOutput struct {
	Split      offline.Split
	Identity   map[string]any
	Best       string
	Refit      bool
	Calibrator json.RawMessage
	Ranking    []struct {
		Rank       int
		Method     string
		Metrics    map[string]any
		ToBest     map[string]float64 `json:"nll_minus_best"`
		ToIdentity map[string]float64 `json:"nll_minus_identity"`
		Fits       []struct{ Rows int }
		Error      string
	}
}

func fitJSON[T any](t *testing.T, args ...string) (out T) {
	t.Helper()
	stdout := run(t, append([]string{"fit", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return out
}

// TestFitApplyEval: what eval finds in an applied file is what eval --calibrator finds in the file itself.
func TestFitApplyEval(t *testing.T) {
	testsize.Slow(t)
	for _, kind := range []struct{ double, probs bool }{{false, false}, {true, false}, {false, true}} {
		file := writeTable(t, "in.parquet", fullTable(400, 3, kind.double, kind.probs))
		for _, m := range calibrator.Methods() {
			if m.Name == "matrix" || m.Name == "dirichlet" { // slow, and no other than vector here
				continue
			}
			_, cal := fitFile(t, file, m.Name)
			want := evalJSON[map[string]any](t, file, "--calibrator", cal)
			for _, ext := range []string{".arrow", ".csv", ".npz"} {
				out := filepath.Join(t.TempDir(), "out"+ext)
				run(t, "apply", cal, file, "-o", out, "--float64")
				got := evalJSON[map[string]any](t, out)
				for key, v := range want {
					if got[key] != v {
						t.Errorf("%s by %s, %s: %s is %v, want %v", m.Name, ext, file, key, got[key], v)
					}
				}
			}
			single := filepath.Join(t.TempDir(), "single.arrow")
			run(t, "apply", cal, file, "-o", single)
			// float32 has 24 bits; the sums over rows are of that accuracy unless a probability is 0.
			got, ok := evalJSON[map[string]any](t, single)["brier"].(float64)
			if wantBrier, _ := want["brier"].(float64); !ok || math.Abs(got-wantBrier) > 1e-6 {
				t.Errorf("%s in float32: Brier score %v, want %v", m.Name, got, want["brier"])
			}
		}
	}
}

// TestFitWritesWhatItScored: the calibrator of -o is the one in the report, and its NLL on the held-out file is eval's.
func TestFitWritesWhatItScored(t *testing.T) {
	file, other := writeTable(t, "a.npz", fullTable(500, 3, false, false)),
		writeTable(t, "b.csv", fullTable(200, 3, false, false))
	out := filepath.Join(t.TempDir(), "cal.json")
	got := fitJSON[fitOutput](t, file, "--method", "temperature", "--holdout", other, "-o", out)
	c, err := offline.ReadCalibrator(out)
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := calibrator.Decode(got.Calibrator)
	if err != nil || embedded != c {
		t.Errorf("the report has %v, %v, the file %v", embedded, err, c)
	}
	before, after := evalJSON[map[string]any](t, other), evalJSON[map[string]any](t, other, "--calibrator", out)
	for key, v := range after {
		if got.Holdout.After[key] != v {
			t.Errorf("after: %s is %v, want %v", key, got.Holdout.After[key], v)
		}
	}
	difference := after["nll"].(float64) - before["nll"].(float64)
	if d := got.Holdout.Difference; math.Abs(d["mean"]-difference) > 1e-12 ||
		!(d["lo"] < d["mean"] && d["mean"] < d["hi"] && d["hi"] < 0) {
		t.Errorf("got the difference %v, want %v in an interval below 0", d, difference)
	}
	if got.Split.FitRows != 500 || got.Split.HeldRows != 200 || got.Fit.Rows != 500 {
		t.Errorf("got %+v and %d rows, want 500 and 200", got.Split, got.Fit.Rows)
	}
}

// TestFitHoldoutShare: of one file, the rows that were not fitted on; --refit takes all afterwards, --folds too.
func TestFitHoldoutShare(t *testing.T) {
	file := writeTable(t, "a.parquet", fullTable(500, 3, false, false))
	part := fitJSON[fitOutput](t, file, "--holdout", "0.2")
	refit := fitJSON[fitOutput](t, file, "--holdout", "0.2", "--refit")
	folds := fitJSON[fitOutput](t, file, "--folds", "5")
	whole := fitJSON[fitOutput](t, file)
	if part.Fit.Rows != 400 || part.Holdout.After["n"] != 100. || refit.Fit.Rows != 500 ||
		folds.Holdout.After["n"] != 500. || whole.Holdout != nil {
		t.Errorf("got %+v, %+v, %+v, %+v", part, refit, folds, whole)
	}
	if string(part.Calibrator) == string(whole.Calibrator) {
		t.Error("the fit on a part is that on the whole file")
	}
	for _, r := range []fitOutput{refit, folds} {
		if string(r.Calibrator) != string(whole.Calibrator) {
			t.Errorf("%+v: got %s, want %s, that of all rows", r.Split, r.Calibrator, whole.Calibrator)
		}
	}
	if again := fitJSON[fitOutput](t, file, "--holdout",
		"0.2"); again.Holdout.After["nll"] != part.Holdout.After["nll"] {
		t.Error("a second split differs")
	}
	if other := fitJSON[fitOutput](t, file, "--holdout", "0.2", "--seed",
		"1"); other.Holdout.After["nll"] == part.Holdout.After["nll"] {
		t.Error("another seed gives the same split")
	}
}

// TestFitWeights: a row of weight 3 counts as three rows, in the fit and in the score; --no-weights undoes it.
func TestFitWeights(t *testing.T) {
	rows := fullTable(300, 3, false, false)
	repeated := &table.Table{K: 3}
	for i := range rows.N {
		for range int(rows.Weight[i]) {
			repeated.Scores32 = append(repeated.Scores32, rows.Scores32[i*3:(i+1)*3]...)
			repeated.Label = append(repeated.Label, rows.Label[i])
			repeated.N++
		}
	}
	temperature := func(args ...string) float64 {
		c, err := calibrator.Decode(fitJSON[fitOutput](t, args...).Calibrator)
		if err != nil {
			t.Fatal(err)
		}
		return c.(calibrator.Temperature).T()
	}
	weighted, many := writeTable(t, "w.arrow", rows), writeTable(t, "r.arrow", repeated)
	if got, want := temperature(weighted), temperature(many); math.Abs(got-want) > 1e-6 {
		t.Errorf("weighted: T %v, repeated: %v", got, want)
	}
	if got := temperature(weighted, "--no-weights"); math.Abs(got-temperature(many)) < 1e-4 {
		t.Errorf("--no-weights: T %v is that with weights", got)
	}
	a, b := evalJSON[map[string]any](t, weighted), evalJSON[map[string]any](t, many)
	for _, key := range []string{"nll", "ece", "accuracy", "cwece"} {
		// Class-wise sums of float32 rows of weight 1 are in multiples of 2^-32.
		if math.Abs(a[key].(float64)-b[key].(float64)) > 0x1p-32 {
			t.Errorf("eval: %s is %v weighted, %v repeated", key, a[key], b[key])
		}
	}
	if plain := evalJSON[map[string]any](t, weighted, "--no-weights"); plain["nll"] == a["nll"] {
		t.Error("eval --no-weights: NLL is that with weights")
	}
}

// TestFitAll ranks every method, writes the first, and by folds judges on every row.
func TestFitAll(t *testing.T) {
	file, out := writeTable(t, "a.npz", fullTable(600, 3, false, false)), filepath.Join(t.TempDir(), "best.json")
	for _, args := range [][]string{{"--holdout", "0.5"}, {"--folds", "3"}} {
		got := fitJSON[compareOutput](t, append([]string{file, "--method", "all", "--loss-scaling", "both", "-o", out,
			"--force"}, args...)...)
		var names []string
		for i, r := range got.Ranking {
			names = append(names, r.Method)
			if r.Error != "" {
				continue
			}
			if r.Rank != i+1 || i > 0 && r.Metrics["nll"].(float64) < got.Ranking[i-1].Metrics["nll"].(float64) {
				t.Errorf("place %d: got %+v after %+v", i+1, r, got.Ranking[max(i-1, 0)])
			}
			d := r.Metrics["nll"].(float64) - got.Identity["nll"].(float64)
			if math.Abs(d-r.ToIdentity["mean"]) > 1e-9 {
				t.Errorf("%s: NLL less the identity's is %v, the report says %v", r.Method, d, r.ToIdentity)
			}
			if n := r.Metrics["n"].(float64); int(n) != got.Split.HeldRows {
				t.Errorf("%s: scored on %v rows, want %d", r.Method, n, got.Split.HeldRows)
			}
		}
		for _, m := range calibrator.Methods() {
			if !slices.Contains(names, m.Name) || m.Scalable && !slices.Contains(names, m.Name+calibrator.Suffix) {
				t.Errorf("%s, or its wrapped form, is not in the ranking", m.Name)
			}
		}
		if got.Best != got.Ranking[0].Method || got.Ranking[0].ToIdentity["hi"] >= 0 {
			t.Errorf("best is %q, %+v, want one that beats the identity", got.Best, got.Ranking[0])
		}
		written, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var compact strings.Builder
		if err := json.NewEncoder(&compact).Encode(got.Calibrator); err != nil || compact.String() != string(written) {
			t.Errorf("%v: written %s, the report has %s", err, written, compact.String())
		}
		if got.Refit != (args[0] == "--folds") {
			t.Errorf("%v: refit %v", args, got.Refit)
		}
	}
}

// TestFitTables are the tables in full, on rows whose numbers are known: with z = (ln 9, 0) the confidence is 0.9, and
// three of four rows are right.
func TestFitTables(t *testing.T) {
	text := "logits_0,logits_1,label\n"
	for range 10 {
		text += strings.Repeat("2.1972245773362196,0,0\n", 3) + "2.1972245773362196,0,1\n"
	}
	file := writeFile(t, "a.csv", text)
	got := timeless(run(t, "fit", file, "--holdout", file, "-o", filepath.Join(t.TempDir(), "c.json")))
	got, _, _ = strings.Cut(got, "written to")
	// T = ln 9 / ln 3, after which every confidence is 0.75 and the NLL ln 4 - 3/4 ln 3. The differences are
	// ln 0.9/0.75 three times in four and ln 0.1/0.25 else, of deviation ln 3 · sqrt(3/16 · 40/39).
	want := `temperature: temperature scaling, T = 2
40 rows, K = 2 with 2 classes among the labels; TIME
fitted on 40 rows, scored on 40 of FILE
                                  before             after                     difference
nll of the fitted rows           0.65467           0.56234                       -0.09233
nll, held out                    0.65467           0.56234  -0.09233 [-0.24163, +0.05697]
accuracy                          0.7500            0.7500
ece                               0.1500            0.0000
  95 % interval         [0.0230, 0.2730]  [0.0000, 0.0948]
  if calibrated                   0.0369            0.0531
brier                             0.4200            0.3750
`
	if got = strings.ReplaceAll(got, file, "FILE"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = timeless(run(t, "fit", file, "--method", "identity,temperature", "--holdout", file))
	want = `FILE: 2 classes; fitted on 40 rows, scored on 40 of FILE
   method           nll                  - best [95 %]              ` +
		`- identity [95 %]               ece [95 %]  if calibrated  accuracy TIME
1  temperature  0.56234                                 ` +
		`-0.09233 [-0.24163, +0.05697]  0.0000 [0.0000, 0.0948]         0.0531    0.7500 TIME
2  identity     0.65467  +0.09233 [-0.05697, +0.24163]                          ` +
		`       0.1500 [0.0230, 0.2730]         0.0369    0.7500 TIME
best: temperature, not distinguishable from 1 other(s) on these rows; not significantly better than the identity
`
	got = regexp.MustCompile(" +fit\n").ReplaceAllString(strings.ReplaceAll(got, file, "FILE"), " TIME\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFitMethodThatFails: it is listed with its error, and only where all fail is that the exit code.
func TestFitMethodThatFails(t *testing.T) {
	two := writeFile(t, "two.csv", "logits_0,logits_1,label\n1,0,0\n0,1,1\n")
	code, out, stderr := runCommand(t, "fit", two, "--method", "scaling_binning,identity", "--holdout", two)
	if code != exitDone || !regexp.MustCompile("-  scaling_binning +failed\n").MatchString(out) ||
		!strings.Contains(out, "scaling_binning failed: fit scaling_binning: ") ||
		!strings.Contains(out, "best: identity") {
		t.Errorf("got exit code %d, %q, %q", code, out, stderr)
	}
	code, _, stderr = runCommand(t, "fit", two, "--method", "scaling_binning,scaling_binning", "--holdout", two)
	if code != exitFailed || !strings.Contains(stderr, "two.csv: fit scaling_binning: ") {
		t.Errorf("alone: got exit code %d, %q", code, stderr)
	}
}

func TestFitAwkwardRows(t *testing.T) {
	const header = "logits_0,logits_1,label\n"
	for _, c := range []struct {
		name, text, want string
	}{
		{"one row", "1,0,0\n", "all rows are right"},
		{"one class", "1,0,0\n0,2,0\n3,0,0\n", "all labels are 0"},
		{"all right", "1,0,0\n0,1,1\n2,0,0\n", "all rows are right"},
		{"unlabelled rows among them", "1,0,0\n5,1,\n2,0,1\n", "2 rows, K = 2 with 2 classes"},
	} {
		out := run(t, "fit", writeFile(t, "a.csv", header+c.text), "--method", "vector")
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: got %q, want %q in it", c.name, out, c.want)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	four := writeFile(t, "four.csv", fourRows)
	three := writeTable(t, "three.csv", fullTable(10, 3, false, false))
	one := writeFile(t, "one.csv", "logits_0,logits_1,label\n1,0,0\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "takes FILE[:array]; got nothing"},
		{[]string{four, "--method", "temprature"}, exitUsage,
			`--method "temprature": unknown method; did you mean temperature`},
		{[]string{four, "--method", "sbece"}, exitUsage, `did you mean temperature_sbece?`},
		{[]string{four, "--method", "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"}, exitUsage,
			"allowed are all, identity, temperature, "},
		{[]string{four, "--method", "platt+cls"}, exitUsage, "class-wise loss scaling is for temperature, "},
		{[]string{four, "--method", "platt", "--loss-scaling", "on"}, exitUsage,
			"--loss-scaling on: not for platt, allowed are temperature, "},
		{[]string{four, "--loss-scaling", "yes"}, exitUsage, `--loss-scaling "yes": allowed are off, on and both`},
		{[]string{four, "--skip", "platt"}, exitUsage, "--skip: needs --method all"},
		{[]string{four, "--method", "all", "--skip", "plat"}, exitUsage,
			`--skip "plat": unknown method; did you mean platt`},
		{[]string{four, "--method", "all", "--skip", "all"}, exitUsage, "--skip all: no method is left"},
		{[]string{four, "--method", "all", "--skip", "xyzzy"}, exitUsage,
			`--skip "xyzzy": unknown method, allowed are identity`},
		{[]string{four, "--bins", "5"}, exitUsage,
			"--bins: a setting of histogram, histogram_width, scaling_binning, which is not asked for"},
		{[]string{four, "--method", "histogram", "--bins", "0"}, exitUsage, "--bins 0: allowed are 1..100000"},
		{[]string{four, "--method", "dirichlet", "--lambda", "-1"}, exitUsage,
			"--lambda -1: allowed are finite values above 0"},
		{[]string{four, "--beta", "1.7"}, exitUsage, "--beta: a setting of --loss-scaling, which is not asked for"},
		{[]string{four, "--method", "temperature+cls", "--beta", "3"}, exitUsage, "--beta 3: allowed are 1.5..2"},
		{[]string{four, "--holdout", "1"}, exitUsage, "--holdout 1: a share must be between 0 and 1"},
		{[]string{four, "--folds", "1"}, exitUsage, "--folds 1: must be 2 or more"},
		{[]string{four, "--folds", "2", "--holdout", "0.5"}, exitUsage, "--folds: not with --holdout"},
		{[]string{four, "--holdout-labels", "y"}, exitUsage, "--holdout-labels: needs a file in --holdout"},
		{[]string{four, "--metric-bins", "0"}, exitUsage, "--metric-bins 0: allowed 1..65536"},
		{[]string{four, "--metric-bins", "-3"}, exitUsage, "--metric-bins -3: allowed 1..65536"},
		{[]string{four, "--metric-bins", "70000"}, exitUsage, "--metric-bins 70000: allowed 1..65536"},
		{[]string{four, "--folds", "5"}, exitFailed, "4 labelled rows, --folds 5 needs as many"},
		{[]string{one, "--method", "all"}, exitFailed,
			"one.csv: only one labelled row, at least 2 are needed to hold some out"},
		{[]string{four, "--holdout", three}, exitFailed, "three.csv has 3 classes, " + four + " has 2"},
		{[]string{four, "-o", four}, exitFailed, "four.csv: the file is there; --force replaces it"},
		{[]string{writeFile(t, "nan.csv", "logits_0,logits_1,label\n1,2,0\n,3,1\n")}, exitFailed,
			"nan.csv: row 1, column logits_0: NaN"},
		{[]string{writeFile(t, "w.csv", "logits_0,logits_1,label,weight\n1,2,0,1\n4,3,1,-1\n")}, exitFailed,
			"row 1, column weight: -1, allowed are finite values from 0"},
		{[]string{writeFile(t, "high.csv", "logits_0,logits_1,label\n1,2,2\n")}, exitFailed,
			"label 2 at row 0, allowed are 0 to 1"},
		{[]string{writeFile(t, "bare.csv", "logits_0,logits_1\n1,2\n")}, exitFailed,
			"no labels: none of the columns has a name of labels"},
		{[]string{writeFile(t, "un.csv", "logits_0,logits_1,label\n1,2,\n")}, exitFailed,
			"none of the 1 rows has a label"},
		{[]string{writeFile(t, "empty.csv", "")}, exitFailed, "the file is empty"},
	} {
		code, out, stderr := runCommand(t, append([]string{"fit"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("fit %q: got exit code %d, stdout %q, stderr %q, want %d and %q", c.args, code, out, stderr,
				c.code, c.want)
		}
	}
}

// TestFitInterrupted: nothing is written, and what was ready is shown.
func TestFitInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	file, out := writeFile(t, "four.csv", fourRows), filepath.Join(t.TempDir(), "cal.json")
	for _, method := range []string{"temperature", "temperature,vector"} {
		var stdout, stderr bytes.Buffer
		code := execute(ctx, []string{"fit", file, "--method", method, "-o", out}, &stdout, &stderr)
		if _, err := os.Stat(out); code != exitFailed || err == nil ||
			!strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%s: got exit code %d, %v, %q", method, code, err, stderr.String())
		}
	}
}

// TestFitToStdout: the calibrator alone on stdout, the report beside it.
func TestFitToStdout(t *testing.T) {
	code, out, stderr := runCommand(t, "fit", writeFile(t, "four.csv", fourRows), "--method", "identity", "-o", "-")
	const want = `{"version":1,"method":"identity"}` + "\n"
	if code != exitDone || out != want || !strings.Contains(stderr, "\nidentity: ") {
		t.Errorf("got exit code %d, %q, %q", code, out, stderr)
	}
}

// TestFitRealNet: temperature scaling is known to find about 2.5 on this net and an ECE below 2 % on the other half.
func TestFitRealNet(t *testing.T) {
	testsize.Slow(t)
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	got := fitJSON[fitOutput](t, file+":resnet20", "--holdout", "0.5")
	before, after := got.Holdout.Before["ece"].(float64), got.Holdout.After["ece"].(float64)
	if got.Holdout.Before["accuracy"] != got.Holdout.After["accuracy"] || before < 0.11 || after > 0.02 ||
		got.Holdout.Difference["hi"] > -0.2 {
		t.Errorf("got %+v", got.Holdout)
	}
	ranking := fitJSON[compareOutput](t, file+":resnet20", "--method", "all", "--skip", "matrix,dirichlet")
	if n := len(ranking.Ranking); ranking.Best != "vector" || ranking.Ranking[n-1].Method != "identity" {
		t.Errorf("got %q first and %+v last, want vector and identity", ranking.Best, ranking.Ranking[n-1])
	}
}
