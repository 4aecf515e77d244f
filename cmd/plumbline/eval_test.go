package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/realdata"
)

// fourRows has confidences .75, .75, .75, 1; rows 0, 1 and 3 are right, so its gaps are |2/3 − .75| on 3 rows and 0.
const fourRows = "probs_0,probs_1,label\n.75,.25,0\n.25,.75,1\n.75,.25,1\n0,1,1\n"

func TestEvalPrintsOneObject(t *testing.T) {
	code, out, stderr := runCommand(t, "eval", writeFile(t, "four.csv", fourRows), "--json")
	var got map[string]float64
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, out, stderr)
	}
	for key, want := range map[string]float64{
		"n": 4, "accuracy": 0.75, "ece": 0.75 * (0.75 - 2./3), "mce": 0.75 - 2./3,
		"nll": -(2*math.Log(.75) + math.Log(.25)) / 4, "brier": (2*.125 + 1.125) / 4,
	} {
		if math.Abs(got[key]-want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
}

func TestEvalDetailAndSeveralFiles(t *testing.T) {
	file := writeFile(t, "four.csv", fourRows)
	_, out, _ := runCommand(t, "eval", file, file, "--json", "--detail", "--bins", "10")
	var got struct {
		Files []struct {
			File    string
			Metrics struct {
				N    int
				Bins []struct{ N int }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if len(got.Files) != 2 || got.Files[1].File != file || got.Files[1].Metrics.N != 4 ||
		len(got.Files[1].Metrics.Bins) != 10 {
		t.Errorf("got %+v, want two files with 4 rows in 10 bins", got)
	}
}

func TestEvalTable(t *testing.T) {
	file := writeFile(t, "four.csv", fourRows)
	_, out, _ := runCommand(t, "eval", file, file)
	for _, line := range strings.Split(out, "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "ece" {
			if len(f) != 3 || f[1] != "0.062500" || f[2] != "0.062500" {
				t.Errorf("got %q, want 0.062500 twice", line)
			}
			return
		}
	}
	t.Errorf("no line ece in %q", out)
}

func TestEvalRefusesWrongInput(t *testing.T) {
	file := writeFile(t, "four.csv", fourRows)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"eval"}, exitUsage, "got nothing"},
		{[]string{"eval", file, "--bins", "0"}, exitUsage, "--bins 0: allowed 1..65536"},
		{[]string{"eval", file, "--bins", "-3"}, exitUsage, "--bins -3: allowed 1..65536"},
		{[]string{"eval", file, "--norm", "0.5"}, exitUsage, "--norm 0.5: allowed are finite values from 1"},
		{[]string{"eval", file, "--csf", "entropy"}, exitUsage, `--csf entropy: allowed are msp, margin and negent`},
		{[]string{"eval", file, "--detail"}, exitUsage, "--detail: needs --json"},
		{[]string{"eval", file + "x"}, exitFailed, "no such file"},
		{[]string{"eval", writeFile(t, "bare.csv", "probs_0,probs_1\n.5,.5\n")}, exitFailed, "no labels"},
		{[]string{"eval", writeFile(t, "high.csv", "probs_0,probs_1,label\n.5,.5,2\n")}, exitFailed, "label 2"},
	} {
		code, _, stderr := runCommand(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("plumbline %s: got exit code %d, stderr %q, want %d and %q", strings.Join(c.args, " "), code,
				stderr, c.code, c.want)
		}
	}
}

// TestEvalOfRealNet holds against what was measured by other means: 81.03 % accuracy, ECE 12.45 %.
func TestEvalOfRealNet(t *testing.T) {
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	code, out, stderr := runCommand(t, "eval", file+":resnet20", "--labels", "test_labels", "--json")
	var got map[string]float64
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v, stderr %q", code, err, stderr)
	}
	if got["n"] != 10000 || got["accuracy"] != 0.8103 || math.Abs(got["ece"]-0.1245) > 5e-5 {
		t.Errorf("got n %v, accuracy %v, ece %v, want 10000, 0.8103, 0.1245", got["n"], got["accuracy"], got["ece"])
	}
}
