package main

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestWithheldLabels: where nearly only the positives have labels, no calibrator takes force, however sure that rows of
// the other class are; where labels are missing at random, one does, also while no positive is among them.
func TestWithheldLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		mean      float64 // of the log-odds
		told      float64 // what they are multiplied by
		labelled  func(positive bool, u float64) bool
		published bool
	}{
		{"calibrated, positives only", -3.5, 1, func(positive bool, _ float64) bool { return positive }, false},
		{"calibrated, positives and few others", -3.5, 1,
			func(positive bool, u float64) bool { return positive || u < .0005 }, false},
		{"too sure, at random", -3.5, 2, func(_ bool, u float64) bool { return u < .09 }, true},
		{"rare positives, not sure enough, at random", -7.5, .4, func(_ bool, u float64) bool { return u < .09 }, true},
	} {
		rng := rand.New(rand.NewPCG(3, 1))
		file := filepath.Join(t.TempDir(), "rows.csv")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		w := csv.NewWriter(f)
		_ = w.Write([]string{"prob", "label"})
		for range 30_000 {
			odds := rng.NormFloat64()*1.8 + c.mean
			y, label := 0, ""
			if rng.Float64() < 1/(1+math.Exp(-odds)) {
				y = 1
			}
			if c.labelled(y == 1, rng.Float64()) {
				label = strconv.Itoa(y)
			}
			_ = w.Write([]string{strconv.FormatFloat(1/(1+math.Exp(-c.told*odds)), 'f', 6, 64), label})
		}
		w.Flush()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		code, out, errOut := runCommand(t, "replay", file, "--model", "m")
		if code != exitDone || strings.Contains(out, ": published: ") != c.published {
			t.Errorf("%s: exit code %d, published %t is wrong:\n%s%s", c.name, code, !c.published, out, errOut)
		}
		if !c.published && !strings.Contains(out, "are of class 0, where the scores expect") {
			t.Errorf("%s: nothing says why:\n%s", c.name, out)
		}
	}
}
