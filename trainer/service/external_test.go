package service

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/head"
)

// TestMain makes a guard of the test's binary where a test has started it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "guard" {
		grace, err := time.ParseDuration(os.Args[2])
		if err != nil {
			panic(err)
		}
		os.Exit(Guard(os.Args[3:], grace))
	}
	os.Exit(m.Run())
}

// TestLineWriter: lines come whole however they are written; what is too long comes in parts.
func TestLineWriter(t *testing.T) {
	text := "a\n\nbc\n" + strings.Repeat("x", 3*longestLine/2) + "\nend"
	for _, step := range []int{1 << 20, 7, len(text)} {
		var got []string
		w := &lineWriter{line: func(b []byte) { got = append(got, string(b)) }}
		for at := 0; at < len(text); at += step {
			if n, err := w.Write([]byte(text[at:min(at+step, len(text))])); err != nil || n != min(step, len(text)-at) {
				t.Fatal(n, err)
			}
		}
		w.end()
		size := len(strings.Join(got, ""))
		if len(got) < 5 || !slices.Equal(got[:3], []string{"a", "", "bc"}) || got[len(got)-1] != "end" ||
			size != len(text)-strings.Count(text, "\n") {
			t.Errorf("steps of %d: %d lines of %d bytes", step, len(got), size)
		}
	}
}

// isRunning says whether a process runs; one that has ended and was not waited for does not.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// resultOf is shell text that sets result to the directory of the result in a request's file.
func resultOf(file string) string {
	return `result=$(sed -n 's/.*"result": "\(.*\)",.*/\1/p' "` + file + `"); `
}

// newTask has a new directory with an empty one for the result.
func newTask(t *testing.T) Task {
	t.Helper()
	dir := t.TempDir()
	task := Task{
		Request:  record.Finetune{ID: "m/1+head1", Classes: 2},
		Attempt:  1,
		Dir:      dir,
		Result:   filepath.Join(dir, "r"),
		Progress: func(string, float64, float64) {},
	}
	if err := os.Mkdir(task.Result, 0o755); err != nil {
		t.Fatal(err)
	}
	return task
}

// TestCommandLeavesNothing: whatever a program has started in its group is gone when it has ended, well or not, or is
// not wanted any more, with a guard and without. A process that it left behind with its output open delays nothing.
func TestCommandLeavesNothing(t *testing.T) {
	testsize.Slow(t)
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at in /proc")
	}
	start := `job="$1"; dir=$(dirname "$job"); ` + resultOf("$job") +
		`(trap '' TERM; sleep 600) & echo $! > "$dir/pid.new"; mv "$dir/pid.new" "$dir/pid"; `
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const grace = 500 * time.Millisecond
	for name, c := range map[string]struct{ script, want string }{
		"ends":      {start + `echo '{"outcome": "unchanged", "why": "no"}' > "$result/report.json"`, ""},
		"fails":     {start + `echo broken >&2; exit 3`, "broken"},
		"is killed": {start + `kill -KILL $$`, "command"},
		"cancelled": {start + `wait`, "command"},
	} {
		for _, guard := range [][]string{nil, {exe, "guard", grace.String()}} {
			t.Run(fmt.Sprintf("%s, guard %v", name, guard != nil), func(t *testing.T) {
				task := newTask(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				pid := 0
				read := func() {
					pid = eventually.Get(t, "the program has started another", func() (int, bool) {
						text, _ := os.ReadFile(filepath.Join(task.Dir, "pid"))
						pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
						return pid, pid != 0
					})
				}
				if name == "cancelled" {
					go func() { read(); cancel() }()
				}
				run := &Command{
					Args:  []string{"/bin/sh", "-c", c.script, "program"},
					Guard: guard,
					Grace: grace,
					Log:   slog.New(slog.DiscardHandler),
				}
				err := run.Run(ctx, task)
				if got := fmt.Sprint(err); c.want == "" && err != nil || err == nil && c.want != "" ||
					!strings.Contains(got, c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				read()
				gone := func() bool { return !isRunning(pid) }
				eventually.True(t, "the process that the program has started is gone", gone)
			})
		}
	}
}

// TestCommandTalks: a program that writes without an end, or a line of progress without an end, fills neither the disk
// nor the records, and its result counts.
func TestCommandTalks(t *testing.T) {
	task := newTask(t)
	longest := 0
	task.Progress = func(step string, _, _ float64) { longest = max(longest, len(step)) }
	script := `job="$1"; ` + resultOf("$job") + `head -c 30000000 /dev/zero | tr '\0' x; echo; ` +
		`head -c 30000000 /dev/zero >&2; ` +
		`printf '{"progress": 1e308, "step": "'; head -c 900000 /dev/zero | tr '\0' s; echo '"}'; ` +
		`printf '{"progress":'; head -c 900000 /dev/zero | tr '\0' '['; echo; ` +
		`echo '{"outcome": "unchanged", "why": "no"}' > "$result/report.json"`
	run := &Command{Args: []string{"/bin/sh", "-c", script, "program"}, Grace: time.Second,
		Log: slog.New(slog.DiscardHandler)}
	if err := run.Run(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(task.Dir, "command.log"))
	if err != nil || st.Size() > maxLog+100 || st.Size() < maxLog/2 {
		t.Errorf("command.log: %v, %v, want %d bytes at most", st, err, maxLog)
	}
	if longest == 0 || longest > maxStep+10 {
		t.Errorf("a step of %d bytes, want 1 to %d", longest, maxStep)
	}
}

// TestFullDiskOfTheLog: a program whose log has no room trains on. It must not die of what it says, nor fill the log of
// the trainer by it.
func TestFullDiskOfTheLog(t *testing.T) {
	const full = "/dev/full" // refuses all that is written to it
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	task := newTask(t)
	if err := os.Symlink(full, filepath.Join(task.Dir, "command.log")); err != nil {
		t.Fatal(err)
	}
	script := resultOf("$1") + `for i in 1 2 3 4 5; do echo said $i; echo loud $i >&2; sleep .1; done; ` +
		`echo '{"outcome": "unchanged", "why": "no"}' > "$result/report.json"`
	var said bytes.Buffer
	c := &Command{Args: []string{"/bin/sh", "-c", script, "sh"}, Grace: time.Second,
		Log: slog.New(slog.NewTextHandler(&said, nil))}
	if err := c.Run(t.Context(), task); err != nil {
		t.Error(err)
	}
	if n := strings.Count(said.String(), "\n"); n != 1 || !strings.Contains(said.String(), "command.log") {
		t.Errorf("%d lines, want one about command.log: %s", n, said.String())
	}
}

// TestResultsAreOurs: what a training leaves is for its owner only, whatever the umask.
func TestResultsAreOurs(t *testing.T) {
	dir := t.TempDir()
	if err := WriteResult(dir, Report{Outcome: record.OutcomeTrained}, head.FreshLinear(3, 2, 1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{FileHead, FileONNX, FileReport} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, st, err)
		}
	}
}

// TestCurve: the validation NLL of an attempt's records, once each, thinned where they are many; a new attempt starts a
// new curve.
func TestCurve(t *testing.T) {
	q := NewQueue()
	take := func(b record.Job) {
		b.Schema, b.Kind, b.ID, b.Trainer, b.State = 1, record.HeadJob, "m/1+head1", "a", beatRunning
		if err := q.Take(&b, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	take(record.Job{Attempt: 1})
	take(record.Job{Attempt: 1, Done: .1, NLL: 2})
	take(record.Job{Attempt: 1, Done: .1, NLL: 2})
	take(record.Job{Attempt: 1, Done: .2, NLL: 1})
	j := q.Find("m/1+head1")
	first := j.Curve
	if len(first) != 2 || first[1].NLL != 1 {
		t.Errorf("got %v, want two points", first)
	}
	for i := range 10 * maxPoints {
		take(record.Job{Attempt: 1, Done: .2 + float64(i+1)/1e4, NLL: 1})
	}
	if n := len(j.Curve); n > maxPoints || n < maxPoints/2 || j.Curve[n-1].Done < .39 || first[0].Done != .1 {
		t.Errorf("got %d points up to %v", n, j.Curve[n-1])
	}
	for i := 1; i < len(j.Curve); i++ {
		if j.Curve[i].Done <= j.Curve[i-1].Done {
			t.Fatalf("points %v and %v are not in order", j.Curve[i-1], j.Curve[i])
		}
	}
	if take(record.Job{Attempt: 2, Done: .5, NLL: 3}); len(j.Curve) != 1 {
		t.Errorf("got %d points of a new attempt, want 1", len(j.Curve))
	}
}
