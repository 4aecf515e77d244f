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

// TestReplayOfFilesHasNoPositions: a position that would have no effect is refused, whatever it is.
func TestReplayOfFilesHasNoPositions(t *testing.T) {
	file := writeFile(t, "rows.csv", "id,z0,z1\na,1,2\n")
	for _, flag := range []string{"--from", "--to"} {
		for _, value := range []string{"bogus", "earliest", "7"} {
			want := fmt.Sprintf("%s %q: only with --topic; of files --skip and --limit choose rows", flag, value)
			code, _, stderr := runCommand(t, "replay", file, flag, value)
			if code != exitUsage || !strings.Contains(stderr, want) {
				t.Errorf("got exit code %d, stderr %q, want %d and %q", code, stderr, exitUsage, want)
			}
		}
	}
}
