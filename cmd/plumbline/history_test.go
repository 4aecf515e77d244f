package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/record"
)

// historyWorld is a broker with rows on it, and a configuration.
func historyWorld(t *testing.T, more string) (cfg config.Config, path string, brokers []string) {
	t.Helper()
	brokers = kafkatest.Start(t)
	path, cfg = deploy(t,
		fmt.Sprintf("kafka: {brokers: [%q], partitions: 1}\nevent_time: {idle_timeout: 500ms, max_ahead: 0s}\n"+
			"http: {listen: %q}\n"+
			"checkpoints: {dir: %q, interval: 100ms}\nrefit: {min_rows: 50, period: 20s}\n%s", brokers[0],
			freeAddress(t),
			t.TempDir(), more))
	rows := batchtest.Rows(1, batchtest.Options{N: 1500, MaxLag: 20 * batchtest.Second, Sharpness: 2})
	kafkatest.Write(t, brokers, messagesOf(t, rows, 0)...)
	return cfg, path, brokers
}

// onTopic are the distinct records of the decisions topic.
func onTopic(t *testing.T, brokers []string) []string {
	t.Helper()
	var out []string
	for _, m := range kafkatest.ReadAll(t, brokers, "plumbline.decisions") {
		var d record.Decision
		if err := json.Unmarshal(m.Value, &d); err != nil {
			t.Fatal(err)
		}
		out = append(out, d.Kind+" "+string(d.Record))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inHistory are the records that `plumbline history` gives.
func inHistory(t *testing.T, path string, args ...string) ([]string, string) {
	t.Helper()
	code, out, stderr := runCommand(t, append([]string{"history", "m", "--limit", "0", "--json", "-c", path},
		args...)...)
	if code != exitDone {
		return nil, stderr
	}
	var page decisionlog.Page
	if err := json.Unmarshal([]byte(out), &page); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range page.Entries {
		all = append(all, e.Kind+" "+string(compactJSON(t, e.Record)))
	}
	slices.Sort(all)
	return all, ""
}

func compactJSON(t *testing.T, b []byte) []byte {
	t.Helper()
	var v json.RawMessage = b
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func awaitHistory(t *testing.T, path string, brokers []string) []string {
	t.Helper()
	want := onTopic(t, brokers)
	what := "the history has the records of the topic:\n" + strings.Join(want, "\n")
	return eventually.Get(t, what, func() ([]string, bool) { // tries of a database that failed are up to 30 s apart
		got, problem := inHistory(t, path)
		if problem != "" {
			return []string{problem}, false
		}
		return got, slices.Equal(got, want)
	})
}

// TestHistoryOfARun: what was decided is in the database, "no change" too, and stays over a restart and a removal.
func TestHistoryOfARun(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	cfg, path, brokers := historyWorld(t, "")
	all := engine.Stages{Shards: true, Models: true}
	rt, stop := start(t, cfg, all)
	drained(t, rt)
	got := awaitHistory(t, path, brokers)
	kept := 0
	for _, r := range got {
		if strings.HasPrefix(r, "calibrator ") && strings.Contains(r, `"outcome":"no change`) {
			kept++
		}
	}
	if kept == 0 {
		t.Errorf("no decision against a change among %d records", len(got))
	}
	file := engine.HistoryFile(&rt.Config)
	stop()
	if direct, problem := inHistory(t, path, "--database"); !slices.Equal(direct, got) {
		t.Errorf("without a process %d records (%s), want %d", len(direct), problem, len(got))
	}
	for i := range 2 {
		if i == 1 {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if _, problem := inHistory(t, path, "--database"); !strings.Contains(problem,
				"no process has filled a database here") {
				t.Errorf("without a database: %q", problem)
			}
		}
		_, stop := start(t, cfg, all)
		awaitHistory(t, path, brokers)
		stop()
	}
}

// TestStreamGoesOnWithoutHistory: a database that cannot be opened stalls nothing, is told of, and catches up.
func TestStreamGoesOnWithoutHistory(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	block := writeFile(t, "blocked", "no directory")
	cfg, path, brokers := historyWorld(t, fmt.Sprintf("history: {path: %q}\n", filepath.Join(block, "history.db")))
	rt, stop := start(t, cfg, engine.Stages{Shards: true, Models: true})
	defer func() { stop() }()
	if st := drained(t, rt); st.Counts["predictions"] != int64(1500) {
		t.Errorf("%v predictions, want 1500", st.Counts["predictions"])
	}
	if n := len(onTopic(t, brokers)); n == 0 {
		t.Error("nothing was decided")
	}
	if st := rt.Past.Fill.Progress(); st.Up || !strings.Contains(st.Error, "not a directory") {
		t.Errorf("status %+v, want one that says why it is not up", st)
	}
	resp, err := http.Get("http://" + cfg.HTTP.Listen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(body), "\nplumbline_history_up 0\n") {
		t.Errorf("metrics do not say that the history is down (%v)", err)
	}
	if _, problem := inHistory(t, path); !strings.Contains(problem, "503") {
		t.Errorf("asked without a database: %q, want 503", problem)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	awaitHistory(t, path, brokers)
	eventually.Get(t, "the history is up", func() (any, bool) { // each partition tries again at its own time
		st := rt.Past.Fill.Progress()
		return st, st.Up && st.Error == ""
	})
}

func TestHistoryUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--since \"noon\"": {"history", "m", "--since", "noon"},
		"--limit -1":       {"history", "m", "--limit", "-1"},
		"takes MODEL; got": {"history"},
		"history.store is off": {"history", "m", "--database", "-c",
			writeFile(t, "off.yaml", "history: {store: \"off\"}\n")},
		"only one of dsn_env": {"history", "m", "-c",
			writeFile(t, "two.yaml", "history: {store: postgres, dsn_env: A, dsn_file: b}\n")},
		"has no effect while": {"history", "m", "-c", writeFile(t, "none.yaml", "history: {dsn_env: A}\n")},
		"environment variable is": {"history", "m", "--database", "-c",
			writeFile(t, "env.yaml", "history: {store: postgres, dsn_env: PLUMBLINE_NOT_SET}\n")},
	} {
		if code, out, stderr := runCommand(t, args...); code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %q %q, want %q", args, code, out, stderr, want)
		}
	}
}

// TestSigned: a trainer that gives no reason leaves no empty one in the history.
func TestSigned(t *testing.T) {
	if got := signed("t1", "") + signed("", "") + signed("ann", "noise"); got != " (t1) (ann: noise)" {
		t.Errorf("%q", got)
	}
}
