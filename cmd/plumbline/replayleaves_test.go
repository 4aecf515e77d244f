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

// TestReplayOfTopicsHasNoFlagsOfFiles: they would have no effect.
func TestReplayOfTopicsHasNoFlagsOfFiles(t *testing.T) {
	for _, flag := range []string{"--limit=3", "--skip=1", "--shards=2", "--model=m", "--label=y", "--end=false"} {
		name, value, _ := strings.Cut(flag, "=")
		want := fmt.Sprintf("%s %q: only with files; of topics --from and --to choose rows", name, value)
		code, _, stderr := runCommand(t, "replay", "--topic", flag)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("got exit code %d, stderr %q, want %d and %q", code, stderr, exitUsage, want)
		}
	}
}

// TestReplayOfTooManyShards: each takes memory, before a row is read.
func TestReplayOfTooManyShards(t *testing.T) {
	file := writeFile(t, "rows.csv", "prob,label\n0.5,1\n")
	for _, n := range []string{"0", "1000000000", "9000000000000000000"} {
		want := "--shards " + n + ": must be 1 to 4096"
		if code, _, stderr := runCommand(t, "replay", file, "--shards", n); code != exitUsage ||
			!strings.Contains(stderr, want) {
			t.Errorf("got exit code %d, stderr %q, want %d and %q", code, stderr, exitUsage, want)
		}
	}
}

// TestReplayNamesRowsLeftOut: what is in no statistic is said, and a replay that took no row has failed.
func TestReplayNamesRowsLeftOut(t *testing.T) {
	var repeated, refused strings.Builder
	repeated.WriteString("id,prob,label\n")
	refused.WriteString("id,prob,label,weight\n")
	for i := range 500 {
		fmt.Fprintf(&repeated, "r%d,0.5,1\n", i%100)
		fmt.Fprintf(&refused, "r%d,0.5,1,-1\n", i)
	}
	for _, c := range []struct {
		rows, delay string // of labels
		code        int
		want        []string
	}{
		{repeated.String(), "0s", exitDone,
			[]string{"100 rows", "left out: 400 rows with the id of one before\n", "state hash"}},
		{refused.String(), "0s", exitFailed,
			[]string{"0 rows", "500 rows rejected (bad_weight 500)", "no row was taken"}},
		{"id,prob,label\na,0.5,1\nb,0.5,0\n", "5h", exitDone, []string{"2 rows, 0 labelled", "state hash",
			"left out: 2 labels without a prediction, or later than join.wait, 1h0m0s\n"}},
		{"id,prob\na,0.5\n", "5h", exitDone, []string{"1 rows", "state hash"}},
	} {
		file := writeFile(t, "rows.csv", c.rows)
		code, stdout, stderr := runCommand(t, "replay", file, "--label-delay", c.delay)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(stdout+stderr, want) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and %q", code, stdout, stderr, c.code, want)
			}
		}
		if strings.Contains(stdout, "state hash \n") || c.code == exitDone && len(c.want) == 2 &&
			strings.Contains(stdout, "left out") {
			t.Errorf("stdout %q", stdout)
		}
		if code, _, _ := runCommand(t, "replay", file, "--label-delay", c.delay, "--json"); code != c.code {
			t.Errorf("--json: exit code %d, want %d", code, c.code)
		}
	}
}

// TestReplayFlags: numbers and times at their ends do what they say, or are refused in words.
func TestReplayFlags(t *testing.T) {
	file := writeFile(t, "rows.csv", "id,prob,label\na,0.5,1\nb,0.5,0\nc,0.25,0\n")
	for _, c := range []struct {
		flags string
		code  int
		want  string
	}{
		{"--limit 9223372036854775807 --skip 1", exitDone, "2 rows"},
		{"--start 2299-01-01T00:00:00Z", exitUsage, "must be of the years 1678 to 2261"},
		{"--start 1600-01-01T00:00:00Z", exitUsage, "must be of the years 1678 to 2261"},
		{"--max-memory foo", exitUsage, `--max-memory "foo": must be such as 4GiB`},
		{"--max-memory -1", exitUsage, `--max-memory "-1": must be such as 4GiB`},
	} {
		code, stdout, stderr := runCommand(t, append([]string{"replay", file}, strings.Fields(c.flags)...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d and %q", c.flags, code, stdout, stderr, c.code,
				c.want)
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

// TestReplayNamesTimesLeft: rows of files with times get others unless --event-rate says which they want.
func TestReplayNamesTimesLeft(t *testing.T) {
	const rows = "prob,label,ts\n0.5,1,2026-01-31T00:00:00Z\n0.5,0,2026-01-31T01:00:00Z\n"
	for _, c := range []struct {
		rows string
		args []string
		want bool
	}{
		{rows, nil, true},
		{rows, []string{"--event-rate", "0"}, false},
		{rows, []string{"--event-rate", "100"}, false},
		{"prob,label\n0.5,1\n", nil, false},
	} {
		code, _, stderr := runCommand(t, append([]string{"replay", writeFile(t, "rows.csv", c.rows)}, c.args...)...)
		if got := strings.Contains(stderr, "times of their own"); code != exitDone || got != c.want {
			t.Errorf("%q: exit code %d, stderr %q; times named: %v, want %v", c.args, code, stderr, got, c.want)
		}
	}
}
