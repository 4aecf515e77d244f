package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplayLeavesNothing: a replay of more rows than it remembers in memory removes the folders that it made, and
// those alone.
func TestReplayLeavesNothing(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	var csv strings.Builder
	csv.WriteString("logits_0,logits_1,label\n")
	for i := range rows {
		fmt.Fprintf(&csv, "%d,0,%d\n", i%3, i%2)
	}
	file := writeFile(t, "rows.csv", csv.String())
	for _, before := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "state")
		if before {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		run(t, "replay", file, "--model", "m", "--version", "1", "-c",
			writeFile(t, "c.yaml", "checkpoints: {dir: "+dir+"}\n"))
		left, err := os.ReadDir(dir)
		if there := err == nil; there != before || len(left) > 0 {
			t.Errorf("the folder of the state was there before: %v, is there after: %v, with %v", before, there, left)
		}
	}
}
