//go:build integration

package integration

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/pgtest"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

// historyEntry is an entry of /api/v1/models/{model}/history.
type historyEntry struct {
	ID, Kind, Version, Slice, State, Summary, By, Why string
	At                                                record.Time
	Record                                            json.RawMessage
}

type historyAnswer struct {
	Entries []historyEntry
	Next    string
	Behind  int64
}

// TestHistory runs a drift with a kill -9 and orders of people, and compares the history with the topics: in a file and
// on a server, after restarts, of two processes, and after the database was deleted.
func TestHistory(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		testHistory(t, "history: {store: file}\n", func(state string) {
			files, err := filepath.Glob(filepath.Join(state, "work", "history-*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no file of the history in %s: %v", state, err)
			}
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.Start(t).Database(t)
		t.Setenv("HISTORY_DSN", dsn)
		testHistory(t, "history: {store: postgres, dsn_env: HISTORY_DSN}\n", func(string) {
			db, err := sql.Open("postgres", dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("DROP TABLE plumbline_entries, plumbline_positions, plumbline_schema"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func testHistory(t *testing.T, yaml string, remove func(state string)) {
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	s := settings{prefix: topicPrefix(t), listen: freePort(t), state: t.TempDir()}
	s.file = withControl(t, s.write(t, driftCommon+strings.TrimPrefix(driftSetups[0].yaml, "\n")+yaml))
	runOK(t, "topics", "create", "-c", s.file)
	p := run(t, s)
	runOK(t, "produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1", "--shuffle",
		"--event-rate", fmt.Sprint(driftRate),
		"--start", start.Format(time.RFC3339), "--label-delay", "0s-10s", file+":resnet20",
		file+":resnet20_gauss_noise_s1")
	p.wait(2*time.Minute, "decide something", func() bool { return len(decidedRecords(t, s)) > 0 })
	p.kill()
	p = run(t, s)
	p.drain(driftTotal, driftTotal)
	runOK(t, "calibrators", "pin", "net", "--why", "audit", "--by", "ann", "-c", s.file)
	runOK(t, "calibrators", "rollback", "net", "--model-version", "9", "--why", "a slip", "--by", "bob", "-c", s.file)
	first := settledHistory(t, p, s)
	checkHistory(t, s, first)
	before := shownSnapshots(t, p)
	if before < 10 {
		t.Errorf("%d snapshots of the window of rows, want those of the panes", before)
	}

	// Another process beside it, and the same one after a stop, after a kill -9 and with the database gone.
	two := s
	two.listen = freePort(t)
	two.file = withControl(t, two.write(t, driftCommon+strings.TrimPrefix(driftSetups[0].yaml, "\n")+yaml))
	q := run(t, two)
	sameHistory(t, "of another process", settledHistory(t, q, s), first)
	q.stop()
	p.stop()
	p = run(t, s)
	sameHistory(t, "after a restart", settledHistory(t, p, s), first)
	p.wait(time.Minute, fmt.Sprintf("show %d snapshots of before", before),
		func() bool { return shownSnapshots(t, p) >= before })
	p.kill()
	remove(s.state)
	p = run(t, s)
	sameHistory(t, "of a database that was deleted", settledHistory(t, p, s), first)

	var cli historyAnswer
	runJSON(t, &cli, "history", "net", "--limit", "0", "--json", "-c", s.file)
	sameHistory(t, "of the command", cli.Entries, first)
	if text := string(runOK(t, "history", "net", "--kind", "calibrator", "--limit", "3", "-c",
		s.file)); !strings.Contains(text, "pinned") || !strings.Contains(text, "(ann: audit)") ||
		!strings.Contains(text, "older ones") {
		t.Errorf("the command prints:\n%s", text)
	}
	p.stop()
	runJSON(t, &cli, "history", "net", "--limit", "0", "--json", "--database", "-c", s.file)
	sameHistory(t, "of the database without a process", cli.Entries, first)
}

// withControl lets the process take orders.
func withControl(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(b), "http:\n", "http:\n  control: true\n", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// decidedRecords are the distinct records of the decisions topic.
func decidedRecords(t *testing.T, s settings) map[string]record.Decision {
	t.Helper()
	out := map[string]record.Decision{}
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("decisions")) {
		var d record.Decision
		if err := json.Unmarshal(m.Value, &d); err != nil {
			t.Fatalf("%s/%d@%d: %v", m.Topic, m.Partition, m.Offset, err)
		}
		if string(m.Key) != d.Model {
			t.Errorf("the key of a decision about %s is %q", d.Model, m.Key)
		}
		out[d.Kind+" "+string(d.Record)] = d
	}
	return out
}

// settledHistory asks a process for everything, by pages of 7, once the database has what the topic has.
func settledHistory(t *testing.T, p *process, s settings) (all []historyEntry) {
	t.Helper()
	p.wait(2*time.Minute, "have what the decisions topic has", func() bool {
		all = nil
		for cursor := ""; ; {
			var a historyAnswer
			if err := p.get("/api/v1/models/net/history?limit=7&cursor="+url.QueryEscape(cursor), &a); err != nil {
				return false
			}
			all = append(all, a.Entries...)
			if cursor = a.Next; cursor == "" {
				return a.Behind == 0 && slices.ContainsFunc(all,
					func(e historyEntry) bool { return e.State == "refused" }) && len(all) >= len(decidedRecords(t, s))
			}
		}
	})
	return all
}

// shownSnapshots is how many moments the page can show.
func shownSnapshots(t *testing.T, p *process) int {
	t.Helper()
	var a struct{ Snapshots []json.RawMessage }
	if err := p.get("/api/v1/snapshots?model=net&window=last2000&limit=10000&detail=none", &a); err != nil {
		t.Logf("none yet: %v", err) // a process that has just started has not read them back
		return 0
	}
	return len(a.Snapshots)
}

// checkHistory holds a history against the topics.
func checkHistory(t *testing.T, s settings, got []historyEntry) {
	t.Helper()
	want := decidedRecords(t, s)
	states := map[string]int{}
	for i, e := range got {
		states[e.Kind+" "+e.State]++
		if _, ok := want[e.Kind+" "+string(e.Record)]; !ok {
			t.Errorf("entry %d is not on the decisions topic: %.200s", i, e.Record)
		}
		if i > 0 && e.At.After(got[i-1].At) {
			t.Errorf("entry %d, of %s, stands after that of %s", i, e.At, got[i-1].At)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, %d records on the topic", len(got), len(want))
	}
	for _, state := range []string{"calibrator published", "calibrator no_change", "calibrator pinned",
		"calibrator refused", "alert firing", "alert resolved"} {
		if states[state] == 0 {
			t.Errorf("no %s among %v", state, states)
		}
	}
	t.Logf("entries: %v", states)
	// What the compacted topics have is there, too.
	for topic, kind := range map[string]string{"calibrators": "calibrator", "alerts": "alert"} {
		for _, m := range kafkatest.ReadAll(t, brokers, s.topic(topic)) {
			if bytes.HasSuffix(m.Key, []byte("/"+record.StageTop)) {
				continue // no decision
			}
			if !slices.ContainsFunc(got, func(e historyEntry) bool {
				return e.Kind == kind &&
					bytes.Equal(e.Record, m.Value)
			}) {
				t.Errorf("%s: a record is not in the history: %.200s", topic, m.Value)
			}
		}
	}
}

func sameHistory(t *testing.T, what string, got, want []historyEntry) {
	t.Helper()
	text := func(es []historyEntry) []string {
		var out []string
		for _, e := range es {
			var record bytes.Buffer
			if err := json.Compact(&record, e.Record); err != nil {
				t.Fatal(err)
			}
			e.Record = record.Bytes()
			out = append(out, fmt.Sprintf("%s %s %s %s %s %s %s %s %s %s", e.ID, e.Kind, e.Version, e.Slice, e.At,
				e.State, e.Summary, e.By, e.Why, e.Record))
		}
		return out
	}
	g, w := text(got), text(want)
	if !slices.Equal(g, w) {
		t.Errorf("history %s: %d entries, want %d", what, len(g), len(w))
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("entry %d is\n%s\nwant\n%s", i, g[i], w[i])
			}
		}
	}
}
