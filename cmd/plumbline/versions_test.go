package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// TestRollout: in a file whose rows name several versions, each version has the statistics of its rows, by replay and
// by eval; eval and fit of all rows together say that they are of several.
func TestRollout(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	var csv strings.Builder
	csv.WriteString("id,prob,label,model,version\n")
	for i := range 600 {
		p := rng.Float64()
		fmt.Fprintf(&csv, "r%d,%.6f,%d,net,%d\n", i, p, rng.IntN(2), 7+rng.IntN(1+i/300))
		if i%50 == 0 { // both versions had the request
			fmt.Fprintf(&csv, "r%d,%.6f,%d,net,%d\n", i, 1-p, rng.IntN(2), 9)
		}
	}
	file := writeFile(t, "rollout.csv", csv.String())
	code, out, errOut := runCommand(t, "replay", file, "--json")
	var replayed struct {
		Snapshots []struct {
			Version  string
			Window   struct{ Kind string }
			Labelled int
			Raw      struct{ ECE, Accuracy float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &replayed); code != exitDone || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, errOut)
	}
	of := map[string]map[string]any{}
	by := evalJSON[byOutput](t, "--by", "version", file)
	for _, s := range by.Files[0].Slices {
		of[s.Value] = s.Metrics
	}
	seen := 0
	for _, s := range replayed.Snapshots {
		if s.Window.Kind != "rows" {
			continue
		}
		seen++
		want := of[s.Version]
		if float64(s.Labelled) != want["n"] || math.Abs(s.Raw.ECE-want["ece"].(float64)) > 1e-6 ||
			math.Abs(s.Raw.Accuracy-want["accuracy"].(float64)) > 1e-9 {
			t.Errorf("version %s: replay has %+v, eval n %v, ece %v, accuracy %v", s.Version, s, want["n"], want["ece"],
				want["accuracy"])
		}
	}
	if seen != 3 || len(of) != 3 {
		t.Errorf("got %d versions by replay, %d by eval, want 3", seen, len(of))
	}
	cal := t.TempDir() + "/cal.json"
	for _, c := range []struct {
		args []string
		want string // on stderr
	}{
		{[]string{"eval", file}, "rows of 3 versions (7, 8, 9) are evaluated together; --by version evaluates each"},
		{[]string{"eval", file, "--by", "version"}, ""},
		{[]string{"fit", file}, "rows of 3 versions (7, 8, 9) are taken together, and a calibrator fits one best: " +
			"--version chooses one"},
		{[]string{"fit", file, "--version", "7", "-o", cal}, ""},
		{[]string{"apply", cal, file, "-o", "-"}, "rows of 3 versions (7, 8, 9) are calibrated by " + cal},
		{[]string{"eval", file, "--by", "version", "--calibrator", cal}, "are calibrated by " + cal},
	} {
		code, _, errOut := runCommand(t, c.args...)
		if code != exitDone || c.want != "" && !strings.Contains(errOut, c.want) || c.want == "" && errOut != "" {
			t.Errorf("%v: exit code %d, stderr %q, want %q", c.args, code, errOut, c.want)
		}
	}
}

// TestFitOfOneVersion: of a file with several models and versions, a fit takes the rows of the one that is chosen, and
// gives what a file of these rows alone gives.
func TestFitOfOneVersion(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	files := map[string]*strings.Builder{"": {}, "net 1": {}, "net 2": {}, "old 1": {}}
	for _, b := range files {
		b.WriteString("logits_0,logits_1,label,model,version\n")
	}
	scale := map[string]float64{"net 1": 3, "net 2": 0.5, "old 1": 8}
	for i := range 900 {
		name := []string{"net 1", "net 2", "old 1"}[i%3]
		model, version, _ := strings.Cut(name, " ")
		z := scale[name] * rng.NormFloat64()
		y := 0
		if rng.Float64() < 1/(1+math.Exp(-z/scale[name])) {
			y = 1
		}
		row := fmt.Sprintf("0,%.6f,%d,%s,%s\n", z, y, model, version)
		files[""].WriteString(row)
		files[name].WriteString(row)
	}
	files[""].WriteString("0,inf,1,old,1\n") // of no account to the others
	paths := map[string]string{}
	for name, b := range files {
		paths[name] = writeFile(t, strings.ReplaceAll("rows "+name, " ", "_")+".csv", b.String())
	}
	for name, path := range paths {
		if name == "" || name == "old 1" {
			continue
		}
		model, version, _ := strings.Cut(name, " ")
		for _, more := range [][]string{nil, {"--holdout", "0.5"}, {"--holdout", paths[name]},
			{"--method", "temperature,vector", "--folds", "3"}} {
			_, want, _ := runCommand(t, append([]string{"fit", path, "-o", "-"}, more...)...)
			chosen := []string{"fit", paths[""], "-o", "-", "--model", model, "--version", version}
			code, got, errOut := runCommand(t, append(chosen, more...)...)
			if code != exitDone || got != want || want == "" || strings.Contains(errOut, "together") {
				t.Errorf("%s %v: exit code %d, got %q, want %q; stderr %s", name, more, code, got, want, errOut)
			}
		}
	}
	none := writeFile(t, "none.csv", "logits_0,logits_1,label\n0,1,1\n1,0,0\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"fit", paths[""], "--model", "net"}, exitDone, "rows of 2 versions (1, 2) are taken together"},
		{[]string{"fit", paths[""], "--version", "2"}, exitDone, ""},
		{[]string{"fit", paths[""], "--version", "9"}, exitFailed, `--version "9": no row is of it; there are: 1, 2`},
		{[]string{"fit", paths["net 1"], "--version", "2"}, exitFailed, `--version "2": no row is of it; there are: 1`},
		{[]string{"fit", none, "--version", "2"}, exitFailed, `--version "2": no row names its version`},
		{[]string{"fit", paths[""], "--version", "2", "--holdout", none}, exitDone, ""},
	} {
		code, _, errOut := runCommand(t, c.args...)
		if code != c.code || c.want != "" && !strings.Contains(errOut, c.want) {
			t.Errorf("%v: exit code %d, stderr %q, want %q", c.args, code, errOut, c.want)
		}
	}
}

// TestRoundedProbabilities: where the label's probability is 0, the NLL of eval and of replay, whose messages carry
// float32, differ by what eval and fit say of these rows, and by nothing else.
func TestRoundedProbabilities(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	var csv strings.Builder
	csv.WriteString("probs_0,probs_1,label\n")
	zeros := 0.0
	for range 500 {
		p := math.Round(1000*math.Pow(rng.Float64(), 8)) / 1000
		y := rng.IntN(2)
		if y == 0 && p == 0 || y == 1 && p == 1 {
			zeros++
		}
		fmt.Fprintf(&csv, "%.3f,%.3f,%d\n", p, 1-p, y)
	}
	file := writeFile(t, "rounded.csv", csv.String())
	m := evalJSON[map[string]any](t, file)
	if m["zero_rows"] != zeros || zeros < 10 {
		t.Errorf("got %v rows of probability 0, want %v", m["zero_rows"], zeros)
	}
	_, out, _ := runCommand(t, "replay", file, "--json")
	var replayed struct {
		Snapshots []struct {
			Window struct{ Kind string }
			Raw    struct{ NLL float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &replayed); err != nil {
		t.Fatal(err)
	}
	without := m["nll"].(float64) - zeros*(metric.ZeroNLL(true)-metric.ZeroNLL(false))/m["n"].(float64)
	for _, s := range replayed.Snapshots {
		if s.Window.Kind == "rows" && math.Abs(s.Raw.NLL-without) > 1e-6 {
			t.Errorf("nll is %v by replay, want %v", s.Raw.NLL, without)
		}
	}
	want := fmt.Sprintf("in %v rows the true class has probability 0, perhaps by rounding: nll takes 744.4 (103.3 as "+
		"float32, which replay and messages have) for each", zeros)
	for _, command := range []string{"eval", "fit"} {
		if _, _, errOut := runCommand(t, command, file); !strings.Contains(errOut, want) {
			t.Errorf("%s: stderr %q, want %q", command, errOut, want)
		}
	}
}
