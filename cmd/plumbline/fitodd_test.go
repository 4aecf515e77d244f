package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/testsize"
)

// oddFiles are files that are small or strange, but hold labelled rows.
func oddFiles(t *testing.T) map[string]string {
	const header = "logits_0,logits_1,label\n"
	return map[string]string{
		"two rows":      writeFile(t, "a.csv", header+"1,0,0\n0,1,0\n"),
		"one class":     writeFile(t, "a.csv", header+"1,0,0\n0,2,0\n3,0,0\n"),
		"one column":    writeFile(t, "a.csv", "logit,label\n1,0\n-2,1\n.5,1\n.1,0\n3,1\n-1,0\n"),
		"probabilities": writeFile(t, "a.csv", "prob,label\n.1,0\n.2,1\n.5,1\n1,0\n0,1\n.7,0\n"),
		"identical":     writeFile(t, "a.csv", header+strings.Repeat("2,1,0\n2,1,1\n", 5)),
		"far":           writeFile(t, "a.csv", header+strings.Repeat("80,-80,0\n-80,80,1\n80,-80,1\n", 4)),
		"three classes": writeFile(t, "a.csv",
			"logits_0,logits_1,logits_2,label\n1,0,0,0\n0,2,0,0\n3,0,1,1\n1,1,1,0\n"),
		"farther": writeFile(t, "a.csv", header+strings.Repeat("1e30,-1e30,1\n0,1,1\n2,1,0\n", 3)),
		"weights": writeFile(t, "a.csv",
			"logits_0,logits_1,label,weight\n1,0,0,1e-30\n0,1,0,1e30\n2,1,1,0\n0,3,1,1e-30\n1,3,1,1e30\n"),
	}
}

// TestFitAllOnOddFiles: a ranking comes out, each method in it once with finite numbers or with its error, and what is
// written can be applied.
func TestFitAllOnOddFiles(t *testing.T) {
	testsize.Slow(t)
	for name, file := range oddFiles(t) {
		for _, split := range [][]string{nil, {"--holdout", file}, {"--folds", "2"}} {
			out := filepath.Join(t.TempDir(), "cal.json")
			args := append([]string{"fit", file, "--method", "all", "--loss-scaling", "both", "--json", "-o", out},
				split...)
			code, stdout, stderr := runCommand(t, args...)
			var got compareOutput
			if err := json.Unmarshal([]byte(stdout), &got); code != exitDone || err != nil {
				t.Errorf("%s %v: got exit code %d, %v, %s", name, split, code, err, stderr)
				continue
			}
			seen := map[string]bool{}
			for _, r := range got.Ranking {
				nll, ok := r.Metrics["nll"].(float64)
				if seen[r.Method] || (r.Error == "") != ok || ok && (math.IsNaN(nll) || math.IsInf(nll, 0)) {
					t.Errorf("%s %v: %+v", name, split, r)
				}
				seen[r.Method] = true
			}
			if len(seen) != len(calibrator.Methods())+len(offline.ScalableNames()) {
				t.Errorf("%s %v: %d methods", name, split, len(seen))
			}
			if text, err := os.ReadFile(out); err != nil {
				t.Error(err)
			} else if _, err := calibrator.Decode(text); err != nil {
				t.Errorf("%s %v: %v", name, split, err)
			}
			run(t, "apply", out, file, "-o", "-")
			run(t, "eval", file, "--calibrator", out)
		}
	}
}

// TestFitSaysOnceWhatIsOfTheRows: a warning of all methods stands once, above those of each.
func TestFitSaysOnceWhatIsOfTheRows(t *testing.T) {
	out := run(t, "fit", oddFiles(t)["one class"], "--method", "identity,temperature,platt", "--holdout", "0.4")
	if strings.Count(out, "all labels are 0") != 1 || !strings.Contains(out, "\nwarning: all labels are 0\n") {
		t.Errorf("got %s", out)
	}
}

// TestFitOneRow: each method fits it and says what is wrong with that, or that it needs more.
func TestFitOneRow(t *testing.T) {
	for _, file := range []string{
		writeFile(t, "one.csv", "logits_0,logits_1,label\n1,0,0\n"), writeFile(t, "one.csv", "prob,label\n.25,1\n"),
		writeFile(t, "one.csv", "logits_0,logits_1,logits_2,label\n80,-80,-80,2\n"),
	} {
		for _, m := range offline.MethodNames() {
			code, out, stderr := runCommand(t, "fit", file, "--method", m)
			if m == "scaling_binning" {
				if code != exitFailed || !strings.Contains(stderr, "1 rows of positive weight, need at least 3") {
					t.Errorf("%s: got exit code %d, %q", m, code, stderr)
				}
			} else if code != exitDone || !strings.Contains(out, "warning: 1 row of positive weight") ||
				strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
				t.Errorf("%s: got exit code %d, %q, %q", m, code, out, stderr)
			}
		}
	}
}
